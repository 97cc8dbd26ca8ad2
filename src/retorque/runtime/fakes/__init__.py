"""Simulated robots that the makers' own clients can talk to, on this machine only."""
