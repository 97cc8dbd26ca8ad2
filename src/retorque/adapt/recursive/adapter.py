"""The recursive Bayesian adapter: learns everything linear about the robot while it moves, and inverts it each tick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.identified import identified_card
from retorque.adapt.recursive.disturbance import Disturbance
from retorque.adapt.recursive.equation import Equation, averaged_equation
from retorque.adapt.recursive.inverse import Inverse, estimate_arrays
from retorque.adapt.recursive.linear_model import LinearModel
from retorque.adapt.recursive.readout import Readout, read
from retorque.adapt.recursive.square_root_filter import SquareRootFilter
from retorque.adapt.recursive.unknowns import PER_JOINT
from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.loop.history import History
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class RecursiveSettings:
    """Settings of the recursive adapter."""

    window: float = 0.040
    """Time over which an equation is averaged [s]."""
    first_window: float = 0.014
    """The same of the very first one [s]."""
    stride: float = 0.010
    """Time between updates [s]."""
    noise: float = 0.3
    """First guess of an equation's noise, times friction_max / 3 of the joint [N·m]."""
    noise_floor: float = 0.04
    """Least noise that is ever believed, on the same scale [N·m]."""
    noise_memory: float = 1.0
    """Time over which the noise level is learnt [s]."""
    forgetting: float = 0.997
    """Share of the information in an excited direction that survives one update."""
    disturbance: float = 0.3
    """First guess of what the model cannot say, times friction_max / 3 of the joint [N·m]."""
    disturbance_time: float = 0.15
    """How long what the model cannot say is taken to last [s]."""
    card_disturbance_time: float = 0.3
    """The same beside an identified card, whose friction is known but for its memory: a quicker answer only shakes
    flexible joints [s]."""
    disturbance_memory: float = 1.0
    """Time over which its size is learnt [s]."""
    card: str = ""
    """Path of an identified card whose numbers and errors are the prior; default: the robot's own where it was
    identified, else the ranges of its profile."""


class Recursive(Adapter):
    """Linear-Gaussian regression of the inverse dynamics, with learnt noise and a fast disturbance on top.

    Every `stride` the last `window` gives one averaged equation a joint, and a square-root Kalman filter updates the
    unknowns. What persists for a moment without being explained is a disturbance, filtered joint by joint. Each tick
    the torque is the inverse dynamics of the estimate at the acceleration that the ideal robot would have.
    """

    periods = (5e-4, 0.01)
    settings_type = RecursiveSettings
    gain_doubt = 0.0
    """Standard deviation of the drives' gains that the filter can be opened to."""
    touch = 0
    """Unknowns that the filter has for what touches the robot."""
    remembered: tuple[str, ...] = (
        "history",
        "_filter",
        "_noise",
        "_disturbance",
        "_evidence",
        "_estimate",
        "belief",
        "health",
    )

    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        *,
        settings: RecursiveSettings | None = None,
    ):
        super().__init__(robot, trials, timestep, seed)
        self.settings = s = settings or RecursiveSettings()
        self.card = identified_card(robot, s.card) if s.card or robot.uncertainty is not None else None
        self.model = LinearModel(robot, self.card, gain_doubt=self.gain_doubt, touch=self.touch)
        self.learn_every = self._stride = max(1, round(s.stride / timestep))
        self._samples = round(s.window / timestep) + 1
        self._first_samples = max(3, round(s.first_window / timestep) + 1)
        self._step = self._stride * timestep
        self.history = History(self._samples, trials, robot.n, timestep)
        self._filter = SquareRootFilter(trials, self.model.size, s.forgetting)
        self._scale = np.maximum(self.model.profile.friction_max, 1e-6) / 3.0
        apart = -(-(self._samples - 1) // self._stride)  # updates between windows that share no sample
        self.disturbance_time = s.disturbance_time if self.card is None else s.card_disturbance_time
        """How long what the model cannot say is taken to last [s]."""
        self._disturbance = Disturbance(
            self._scale, trials, self._step, apart, s.disturbance, self.disturbance_time, s.disturbance_memory,
            0.3 * s.noise_floor,
        )  # fmt: skip
        self._tick_inverse, self._inverse = (Inverse(self.model, timestep) for _ in range(2))
        self.reset()

    def reset(self) -> None:
        s, shape = self.settings, (self.trials, self.robot.n)
        self.history.reset()
        self._filter.reset()
        self._disturbance.reset()
        self._noise = np.broadcast_to((s.noise * self._scale) ** 2, shape).copy()
        self.health[:] = 0
        # A card that was identified is evidence that something is hidden.
        self._evidence = np.full(self.trials, -8.0 if self.card is None else 8.0)
        self._estimate: dict[str, Array] = {}
        self._refresh()
        self.belief = self._believe()

    def resume(self) -> None:
        kept = {name: array.copy() for name, array in self.learnt().items()}
        self.reset()
        for name, array in self.learnt().items():
            array[...] = kept[name]
        self._refresh()
        self.belief = self._believe()

    def learnt(self) -> dict[str, Array]:
        """What lasts, (trials, ...) in place: the estimate with its doubt, the noise, and what the unknowns leave.

        Not among it: the last reports, and what is being judged (a contact, a payload), which are gathered anew.
        """
        rest = self._disturbance
        return {
            "mean": self._filter.mean,
            "root": self._filter.root,
            "noise": self._noise,
            "torque": rest.torque,
            "doubt": rest._doubt,
            "persistent": rest._persistent,
            "neighbours": rest._neighbours,
            "total": rest.total,
            "evidence": self._evidence[:, None],
        }

    def observe(self, state: State) -> None:
        self.history.add(state)

    def learn(self) -> Belief | None:
        samples = self.history.count
        if samples < self._first_samples:
            return None
        equation = averaged_equation(self.history, self.model, samples, self._samples, self._stride)
        expected, spread = self._filter.predict(equation.rows)
        self._screen(equation, equation.torque - equation.prior - expected, spread)
        ready = self._released(equation)
        if ready is not None:
            self._absorb(ready)
            expected, _ = self._filter.predict(equation.rows)
            residual = equation.torque - equation.prior - expected
            self._disturbance.learn(np.where(equation.accepted[:, None], residual, 0.0), equation.accepted)
            self._refresh()
        return self._believe()

    def adopt(self, belief: Belief) -> None:
        self.belief = belief

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd, inverse, a = state.position, state.velocity, self._tick_inverse, self.belief.arrays
        ideal = inverse.body.forward_dynamics(q, qd, nominal_torque)
        return nominal_torque + a["trust"] * (inverse(a, q, qd, ideal) - nominal_torque)

    def readout(self, trial: int = 0) -> Readout:
        """What has been learnt of one robot, with errors, and what its motion has not shown."""
        return read(self.model, self._filter, trial)

    def _screen(self, equation: Equation, innovation: Array, spread: Array) -> None:
        """Mark which trials' equations may be learnt from."""
        self.health[:] = np.where(equation.accepted, 0, int(Health.SKIPPED))

    def _released(self, equation: Equation) -> Equation | None:
        """The equation to learn from now."""
        return equation

    def _absorb(self, equation: Equation) -> None:
        """Update the unknowns and the noise level with an equation of the trials that accept it."""
        use = equation.accepted
        rows = np.where(use[:, None, None], equation.rows, 0.0)
        measured = np.where(use[:, None], equation.torque - equation.prior, 0.0)
        expected, spread = self._filter.predict(rows)
        innovation = measured - expected
        noise = self._noise * equation.noise_factor
        self._weigh(equation, innovation, spread, noise)
        self._filter.update(innovation, rows, spread, noise)
        self._constrain(use)
        expected, spread = self._filter.predict(rows)
        self._learn_noise(measured - expected, np.sum(spread * spread, axis=1), use)

    def _weigh(self, equation: Equation, innovation: Array, spread: Array, noise: Array) -> None:
        """Evidence that anything is hidden at all: the prior family's likelihood against the ideal robot's.

        Without it, a robot with nothing hidden would be corrected for the average hidden payload before the first
        equations say otherwise. An equation that is not learnt from says nothing about that either.
        """
        mismatch = equation.mismatch
        covariance = np.matmul(np.swapaxes(spread, -1, -2), spread)
        index = np.arange(noise.shape[-1])
        covariance[:, index, index] += noise
        root = np.linalg.cholesky(covariance)
        white = np.linalg.solve(root, innovation[..., None])[..., 0]
        hidden = -0.5 * np.sum(white * white, axis=-1) - np.sum(np.log(root[:, index, index]), axis=-1)
        nothing = -0.5 * np.sum(mismatch * mismatch / noise + np.log(noise), axis=-1)
        evidence = np.clip(0.995 * self._evidence + hidden - nothing, -8.0, 8.0)
        self._evidence = np.where(equation.accepted, evidence, self._evidence)

    def _constrain(self, use: Array) -> None:
        """Move the joint unknown that is farthest out of its bounds back onto them, in each used trial that has one."""
        model = self.model
        joint, _ = model.unknowns(self._filter.mean)
        beyond = np.maximum(model.low - joint, 0.0) - np.maximum(joint - model.high, 0.0)
        size = np.linalg.norm(model.joint_root, axis=-1)  # (n, F) prior standard deviation
        relative = (np.abs(beyond) / np.maximum(size, 1e-12)).reshape(self.trials, -1)
        worst = np.argmax(relative, axis=1)
        trials = np.flatnonzero(use & (relative[np.arange(self.trials), worst] > 1e-3))
        if len(trials) == 0:
            return
        j, f = np.divmod(worst[trials], PER_JOINT)
        rows = np.zeros((len(trials), model.size))
        columns = j[:, None] * PER_JOINT + np.arange(PER_JOINT)
        np.put_along_axis(rows, columns, model.joint_root[j, f], axis=1)
        self._filter.project(trials, rows, beyond[trials, j, f])

    def _learn_noise(self, residual: Array, variance: Array, use: Array) -> None:
        s = self.settings
        rate = self._step / s.noise_memory * use[:, None]
        self._noise += rate * (residual * residual + variance - self._noise)
        np.maximum(self._noise, (s.noise_floor * self._scale) ** 2, out=self._noise)

    def _refresh(self) -> None:
        """Read the estimate out of the filter."""
        self._estimate = estimate_arrays(self.model, self._filter.mean, self._disturbance.torque)
        self._estimate["trust"] = (1.0 / (1.0 + np.exp(-self._evidence)))[:, None]

    def _believe(self) -> Belief:
        return Belief.of(type(self).__name__, self.history.time, **self._estimate)
