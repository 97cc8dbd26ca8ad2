"""What a robot is: cards, files of users, and the ideal model."""

from retorque.robots.library import load, names
from retorque.robots.profile import Profile
from retorque.robots.robot import Frame, Joint, Link, Robot

__all__ = ["Frame", "Joint", "Link", "Profile", "Robot", "load", "names"]
