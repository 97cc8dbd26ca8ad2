"""The ways in which a robot's dynamics and their derivatives are computed."""
