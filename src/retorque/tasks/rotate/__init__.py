"""Turning objects by hybrid force-velocity servoing: in a hand, and on the floor."""
