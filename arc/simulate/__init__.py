"""Runs a fleet on a virtual clock with the product's own planner, to see what limits come to."""
