"""Your own 1 kHz loop: any class with `read` and `write` is a robot, and the `for` is yours."""

from __future__ import annotations

import time

import numpy as np

from retorque import (
    Command,
    Health,
    JointImpedance,
    Loop,
    Parameters,
    Robot,
    State,
    Supervisor,
    Target,
    ThreadLearner,
    WindowedSines,
    make_adapter,
    profile_of,
)

robot = Robot.load("panda")
profile = profile_of(robot)


class MyRobot:
    """What your driver must look like; a simulation with hidden parameters stands in for the arm here."""

    timestep = 1e-3  # control period [s]
    takes = "torque"  # torques that include gravity; GravityCompensated(MyRobot(), robot) where the robot adds it

    def __init__(self) -> None:
        self.arm = Target(robot, Parameters.sample(robot, profile, (), seed=3))

    def read(self) -> State:
        """Time [s], joint positions [rad], velocities [rad/s] and torques [N·m], (n,) each."""
        return self.arm.read()

    def write(self, command: Command) -> None:
        """Torque of each joint, (n,) [N·m]."""
        self.arm.write(command)


plant = MyRobot()
policy = WindowedSines.sample(robot.home, profile.tracking_amplitude, (), duration=16.0, seed=2)
controller = JointImpedance(robot, profile.tracking_stiffness, profile.tracking_damping)
adapter = Supervisor(make_adapter("default", robot))

late = 0
errors = []
with ThreadLearner(adapter) as learner:  # learning runs beside the loop, not in it
    loop = Loop(plant, policy, controller, adapter, learner=learner)
    due = time.monotonic()
    for _ in range(1000):
        tick = loop.tick()
        errors.append(tick.action.position - tick.state.position)
        due += plant.timestep
        late += time.monotonic() > due
        time.sleep(max(0.0, due - time.monotonic()))

print(
    f"{len(errors)} ticks, {late} of them late; joint error {np.rad2deg(np.sqrt(np.mean(np.square(errors)))):.2f} deg"
)
print("codes seen:", {Health.names(int(code))[0]: count for code, count in adapter.counts.items() if count} or "none")
