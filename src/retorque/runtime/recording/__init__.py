"""Recording every tick of a robot, and what can be done with a recording."""
