"""Measures the node beside a floor written by hand, in one run on one machine."""
