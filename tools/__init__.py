"""Chores around the project: pins, the map, the tiers of tests. Never shipped."""
