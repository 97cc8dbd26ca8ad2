"""Cameras that look at simulated robots: rendered, on the robot, by ray casts."""
