"""Decides, purely: a frozen view and limits become a plan whose every refusal is explained."""
