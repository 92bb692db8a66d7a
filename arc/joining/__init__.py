"""Lets a machine join the fleet, or leave it: by the operator's own login, each step told."""
