"""Turns what operations told into what people read; pure, and the same with and without a hub."""
