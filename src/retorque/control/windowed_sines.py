"""Random sines under a raised-sine window, one a joint: the tracking bench's reference (TAM, D.1)."""

from __future__ import annotations

import numpy as np

from retorque.control.action import JointAction
from retorque.control.reference import Reference
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class WindowedSines(Reference):
    """q*(t) = home + amplitude sin²(πt/T) sin(2π cycles t/T + phase).

    Args:
        home: (n,) where it starts and ends [rad].
        amplitude: (trials, n), signed [rad].
        cycles: (trials, n) periods over the whole motion.
        phase: (trials, n) [rad].
        duration: T [s].
    """

    def __init__(self, home: Array, amplitude: Array, cycles: Array, phase: Array, duration: float):
        for name, values in (("home", home), ("amplitude", amplitude), ("cycles", cycles), ("phase", phase)):
            if not np.all(np.isfinite(values)):
                raise RetorqueError(f"the reference's {name} holds a number that is not finite; check where it is made")
        if not duration > 0.0 or not np.isfinite(duration):
            raise RetorqueError(f"a reference lasts longer than 0 s, not {duration}")
        self.home, self.amplitude, self.cycles, self.phase = home, amplitude, cycles, phase
        self.duration = duration
        self._rate = 2.0 * np.pi * cycles / duration

    @classmethod
    def sample(
        cls,
        home: Array,
        amplitude: Array,
        trials: int | tuple[()],
        duration: float,
        seed: int,
        *,
        cycles: tuple[float, float] = (3, 7),
    ) -> WindowedSines:
        """Base amplitudes (n,) times U[0.75, 1.25], random sign, cycles and phase; trials (): for one robot (n,)."""
        rng = np.random.default_rng(seed)
        shape = (len(home),) if isinstance(trials, tuple) else (trials, len(home))
        sign = rng.choice([-1.0, 1.0], shape)
        return cls(
            home,
            sign * amplitude * rng.uniform(0.75, 1.25, shape),
            rng.uniform(*cycles, shape),
            rng.uniform(0.0, 2.0 * np.pi, shape),
            duration,
        )

    def at(self, time: float) -> JointAction:
        t = min(max(time, 0.0), self.duration)
        angle = self._rate * t + self.phase
        half = np.pi * t / self.duration
        window, slope = np.sin(half) ** 2, np.pi / self.duration * np.sin(2.0 * half)
        wave = np.sin(angle)
        position = self.home + self.amplitude * window * wave
        velocity = self.amplitude * (slope * wave + window * self._rate * np.cos(angle))
        return JointAction(position, velocity if time < self.duration else np.zeros_like(position))
