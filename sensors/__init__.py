"""Scheduled hub work: each sensor looks, decides, acts, and reports all three."""
