"""Writes what happened in a fleet into one file that needs nothing else: no script, no network."""
