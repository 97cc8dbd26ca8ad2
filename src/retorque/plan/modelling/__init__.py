"""Keeping a robot's parameters up to date while it runs."""
