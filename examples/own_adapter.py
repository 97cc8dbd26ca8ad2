"""An adapter of your own: two methods. It learns a constant torque a joint, which already carries most of a payload.

On the command line the same class is one word: `retorque bench tracking --adapters direct own_adapter:ConstantTorque`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque import (
    Adapter,
    Belief,
    JointImpedance,
    Loop,
    Parameters,
    RigidBody,
    Robot,
    State,
    Supervisor,
    Target,
    WindowedSines,
    make_adapter,
    profile_of,
    run,
)


@dataclass(frozen=True, kw_only=True)
class ConstantTorqueSettings:
    """Settings; on the command line `--adapter-settings own_adapter:ConstantTorque.memory=0.5`."""

    memory: float = 0.3
    """Time over which the torque is averaged [s]."""


class ConstantTorque(Adapter):
    """Averages how much more torque the robot needed than the ideal one would have, and adds it."""

    settings_type = ConstantTorqueSettings
    remembered = ("_average", "_before", "belief")  # what `save` writes
    learn_every = 10

    def __init__(self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0, *, settings=None):
        super().__init__(robot, trials, timestep, seed)
        self.settings = settings or ConstantTorqueSettings()
        self._body = RigidBody(robot)
        self.reset()

    def reset(self) -> None:
        self._average = np.zeros((self.trials, self.robot.n))
        self._before = np.full((2, self.trials, self.robot.n), np.nan)  # velocity and torque at the last learning
        self._state: State | None = None
        self.belief = Belief.of("ConstantTorque", 0.0, torque=self._average.copy())

    def observe(self, state: State) -> None:
        self._state = state

    def learn(self) -> Belief | None:
        state, period = self._state, self.learn_every * self.timestep
        if state is None:
            return None
        acceleration = (state.velocity - self._before[0]) / period
        missing = state.torque - self._body.inverse_dynamics(state.position, state.velocity, acceleration)
        good = np.isfinite(missing)  # a report that is not finite is no data
        self._average += period / self.settings.memory * np.where(good, missing - self._average, 0.0)
        self._before = np.stack([state.velocity, state.torque])
        return Belief.of("ConstantTorque", state.time, torque=self._average.copy())

    def adopt(self, belief: Belief) -> None:
        self.belief = belief

    def correct(self, state: State, nominal_torque: np.ndarray) -> np.ndarray:
        return nominal_torque + self.belief.arrays["torque"]


if __name__ == "__main__":
    robot = Robot.load("panda")
    profile = profile_of(robot)
    motion = WindowedSines.sample(robot.home, profile.tracking_amplitude, 1, duration=4.0, seed=8, cycles=(1, 2))
    controller = JointImpedance(robot, profile.tracking_stiffness, profile.tracking_damping)
    hidden = Parameters.sample(robot, profile, 1, seed=7)
    ideal = run(Loop(Target(robot, Parameters.ideal(robot, 1)), motion, controller), motion.duration)
    for adapter in (make_adapter("direct", robot, 1), ConstantTorque(robot, 1), make_adapter("default", robot, 1)):
        loop = Loop(Target(robot, hidden), motion, controller, Supervisor(adapter))
        error = run(loop, motion.duration).position - ideal.position
        print(
            f"{type(adapter).__name__:15s} {np.rad2deg(np.sqrt(np.mean(error**2))):6.2f} degrees from the ideal motion"
        )
