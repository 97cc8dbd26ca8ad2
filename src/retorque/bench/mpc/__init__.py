"""Benches of planning and identification at once."""
