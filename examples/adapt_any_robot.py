"""Correct a robot from a URDF or MJCF file whose payload and friction nobody told us about.

Run it with the path of your robot's file, or without for the UR10e on board.
"""

import sys

import numpy as np

from retorque import JointImpedance, Loop, Parameters, Robot, Target, WindowedSines, make_adapter, profile_of, run
from retorque.physics.default_profile import critical_damping

robot = Robot.load(sys.argv[1] if len(sys.argv) > 1 else "ur10e")
profile = profile_of(robot)  # from its card, or made from its limits and inertias
hidden = Parameters.sample(robot, profile, (), seed=7)
motion = WindowedSines.sample(robot.home, profile.tracking_amplitude, (), duration=4.0, seed=8, cycles=(1, 2))
controller = JointImpedance(robot, profile.tracking_stiffness, critical_damping(robot, profile.tracking_stiffness))

ideal = run(Loop(Target(robot, Parameters.ideal(robot)), motion, controller), motion.duration)
for name in ("direct", "default"):
    adapter = make_adapter(name, robot)
    moved = run(Loop(Target(robot, hidden), motion, controller, adapter), motion.duration)
    error = np.rad2deg(np.sqrt(np.mean((moved.position - ideal.position) ** 2)))
    print(f"{name:10s} {error:6.2f} degrees from how the ideal {robot.name} moves")

print("\nwhat it learnt (first lines):")
print("\n".join(str(adapter.readout()).splitlines()[:8]))
