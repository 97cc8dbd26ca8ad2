"""Rigid-body algebra, hidden parameters, actuators and simulated targets."""

from retorque.physics.external import Pulses
from retorque.physics.parameters import Parameters
from retorque.physics.profile import profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.physics.sensors import SensorSettings
from retorque.physics.state import State
from retorque.physics.target import Target

__all__ = ["Parameters", "Pulses", "RigidBody", "SensorSettings", "State", "Target", "profile_of"]
