"""Joint friction as functions of velocity that are linear in what is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retorque.physics.presliding import DISTANCES
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown


def _digits(value: float) -> str:
    """A number as short as it can be written without becoming another."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def limited_sign(velocity: Any, limit: float) -> Any:
    """The limited Coulomb of equation 13: sign(v) beyond `limit`, v / limit within; NumPy arrays and torch tensors."""
    return (velocity / limit).clip(-1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Friction:
    """Which terms every joint's friction has; each term has one coefficient a joint."""

    coulomb: bool = True
    """Limited Coulomb friction (equation 13) [N·m]."""
    limit: float = 0.02
    """Velocity below which Coulomb friction is proportional to velocity [rad/s]."""
    presliding: tuple[float, ...] = ()
    """Distances [rad], each one of `presliding.DISTANCES`: friction that stays when a joint stops and winds back when
    it reverses [N·m]. Where a motion has no path (one state alone), each acts as limited Coulomb friction."""
    viscous: bool = True
    """Friction proportional to velocity [N·m·s/rad]."""
    stribeck: tuple[float, ...] = ()
    """Stribeck velocities [rad/s]: each adds sign(v) exp(-(v/vs)²), the extra friction of slow motion [N·m]."""
    saturating: tuple[float, ...] = ()
    """Widths [rad/s]: each adds tanh(v/width), friction that rises ever more slowly with speed [N·m]."""
    asymmetric: bool = False
    """Separate coefficients for each direction of motion."""
    offset: bool = True
    """A constant torque: sensor bias or a spring [N·m]."""

    @classmethod
    def of_terms(cls, terms: Sequence[str], limit: float = 0.02) -> Friction:
        """The model with these `names`; names that no model has are refused."""
        sides = [term.rsplit(" ", 1)[-1] in ("forward", "backward") for term in terms if term != "offset"]
        stems = [term.rsplit(" ", 1)[0] if any(sides) and term != "offset" else term for term in terms]
        numbers: dict[str, list[float]] = {"presliding": [], "stribeck": [], "saturating": []}
        for stem in dict.fromkeys(stems):
            kind, _, value = stem.partition(" ")
            if kind in numbers:
                try:
                    numbers[kind].append(float(value))
                except ValueError:
                    raise RetorqueError(f"the friction term '{stem}' needs one number, such as '{kind} 0.1'") from None
        found = cls(
            coulomb="coulomb" in stems,
            limit=limit,
            presliding=tuple(numbers["presliding"]),
            viscous="viscous" in stems,
            stribeck=tuple(numbers["stribeck"]),
            saturating=tuple(numbers["saturating"]),
            asymmetric=any(sides),
            offset="offset" in terms,
        )
        if found.names != tuple(terms):
            raise RetorqueError(f"friction terms {', '.join(terms)} are not in order; write: {', '.join(found.names)}")
        return found

    def __post_init__(self) -> None:
        if not 0.0 < self.limit < np.inf:
            raise RetorqueError(f"the Coulomb limit velocity must be above zero and finite, not {self.limit}")
        if any(not 0.0 < value < np.inf for value in (*self.stribeck, *self.saturating)):
            raise RetorqueError("Stribeck velocities and saturation widths must be above zero and finite")
        if any(value not in DISTANCES for value in self.presliding):
            raise RetorqueError(f"presliding distances are among {', '.join(f'{x:g}' for x in DISTANCES)} rad")

    @property
    def names(self) -> tuple[str, ...]:
        """One name a coefficient."""
        stems = ["coulomb"] if self.coulomb else []
        stems += [f"presliding {_digits(value)}" for value in self.presliding]
        stems += ["viscous"] if self.viscous else []
        stems += [f"stribeck {_digits(value)}" for value in self.stribeck]
        stems += [f"saturating {_digits(value)}" for value in self.saturating]
        if self.asymmetric:
            stems = [f"{stem} {side}" for stem in stems for side in ("forward", "backward")]
        return (*stems, *(("offset",) if self.offset else ()))

    @property
    def units(self) -> tuple[str, ...]:
        """One unit a coefficient."""
        return tuple("N·m·s/rad" if name.startswith("viscous") else "N·m" for name in self.names)

    @property
    def count(self) -> int:
        """Coefficients a joint."""
        return len(self.names)

    @property
    def nonnegative(self) -> Array:
        """(count,) which coefficients cannot be negative: friction never drives; an offset may have either sign."""
        return np.array([name != "offset" for name in self.names], dtype=bool)

    def features(self, velocity: Array, slip: Array | None = None) -> Array:
        """(..., n, count) such that friction torque = sum over the last axis of features times coefficients.

        Args:
            velocity: (..., n) [rad/s].
            slip: (..., n, distances) the joints' presliding states, where the path is known.
        """
        velocity = np.asarray(velocity, dtype=float)
        terms = []
        sign = limited_sign(velocity, self.limit)
        if self.coulomb:
            terms.append(sign)
        for value in self.presliding:
            terms.append(sign if slip is None else slip[..., DISTANCES.index(value)])
        if self.viscous:
            terms.append(velocity)
        terms += [sign * np.exp(-np.square(velocity / value)) for value in self.stribeck]
        terms += [np.tanh(velocity / value) for value in self.saturating]
        if self.asymmetric:
            terms = [side for term in terms for side in (np.maximum(term, 0.0), np.minimum(term, 0.0))]
        if self.offset:
            terms.append(np.ones_like(velocity))
        if not terms:
            return np.zeros((*velocity.shape, 0))
        return np.stack(terms, axis=-1)

    def torque(self, velocity: Array, coefficients: Array, slip: Array | None = None) -> Array:
        """Friction torque (..., n) [N·m] of coefficients (n, count)."""
        return np.sum(self.features(velocity, slip) * coefficients, axis=-1)

    def slopes(self, velocity: Array, slip_slope: Array | None = None) -> Array:
        """(..., n, count) derivatives of `features` by velocity [s/rad].

        Args:
            velocity: (..., n) [rad/s].
            slip_slope: (..., n, distances) derivative of the presliding states by velocity, where the path is known.
        """
        velocity = np.asarray(velocity, dtype=float)
        sign, rise = limited_sign(velocity, self.limit), np.where(np.abs(velocity) < self.limit, 1.0 / self.limit, 0.0)
        terms = [rise] if self.coulomb else []
        for value in self.presliding:
            terms.append(rise if slip_slope is None else slip_slope[..., DISTANCES.index(value)])
        if self.viscous:
            terms.append(np.ones_like(velocity))
        for value in self.stribeck:
            terms.append((rise - 2.0 * sign * velocity / value**2) * np.exp(-np.square(velocity / value)))
        terms += [
            1.0 / (value * np.square(np.cosh(np.clip(velocity / value, -50.0, 50.0)))) for value in self.saturating
        ]
        if self.asymmetric:
            forward = velocity >= 0.0
            terms = [side for term in terms for side in (np.where(forward, term, 0.0), np.where(forward, 0.0, term))]
        if self.offset:
            terms.append(np.zeros_like(velocity))
        return np.stack(terms, axis=-1) if terms else np.zeros((*velocity.shape, 0))


NO_FRICTION = Friction(coulomb=False, viscous=False, offset=False)
PRESETS: dict[str, Friction] = {
    "none": NO_FRICTION,
    "sign": Friction(viscous=False, offset=False),
    "coulomb-viscous": Friction(),
    "saturating": Friction(saturating=(0.2,)),
    "stribeck": Friction(stribeck=(0.1,)),
    "asymmetric": Friction(asymmetric=True),
    "presliding": Friction(coulomb=False, presliding=(1e-4, 3e-4, 1e-3), saturating=(0.5,)),
    "full": Friction(stribeck=(0.1,), saturating=(0.2,), asymmetric=True),
}


def preset(name: str) -> Friction:
    """A friction model by name."""
    if name not in PRESETS:
        raise unknown("friction model", name, [*PRESETS, "auto"])
    return PRESETS[name]
