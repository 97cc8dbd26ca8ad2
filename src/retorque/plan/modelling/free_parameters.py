"""Which numbers of a robot are unknown while it runs, within which bounds, and the first guess of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retorque.physics.parameters import Parameters
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot
from retorque.work.array import Array, read_only
from retorque.work.errors import RetorqueError


class FreeParameters:
    """Some columns of a selection: a vector (size,) inside bounds.

    Args:
        selection: the kinds they are of; other columns stay as in its base.
        columns: of the selection, or their names; default: all.
        lower, upper: (size,) bounds.
        guess: (size,) what is believed at first.
        labels: a short name for each; default: the selection's.
    """

    def __init__(
        self,
        selection: Selection,
        *,
        lower: Array | Sequence[float],
        upper: Array | Sequence[float],
        guess: Array | Sequence[float],
        columns: Sequence[str] = (),
        labels: Sequence[str] = (),
    ):
        self.selection = selection
        strange = [name for name in columns if name not in selection.names]
        if strange:
            raise RetorqueError(f"'{strange[0]}' is not selected; the selection has: {', '.join(selection.names)}")
        chosen = [selection.names.index(name) for name in columns] if columns else range(selection.size)
        self.columns = np.array(chosen, dtype=np.int64)
        self.size = len(self.columns)
        self.labels = tuple(labels) or tuple(selection.names[k] for k in self.columns)
        self.units = tuple(selection.units[k] for k in self.columns)
        self.lower, self.upper, self.guess = (read_only(x) for x in (lower, upper, guess))
        self._base = selection.to_vector(selection.base)
        shapes = {x.shape for x in (self.lower, self.upper, self.guess)} | {(len(self.labels),)}
        if shapes != {(self.size,)} or not np.all(self.lower < self.upper):
            raise RetorqueError(f"bounds, guess and labels must be {self.size} numbers each, lower below upper")
        if not np.all((self.guess >= self.lower) & (self.guess <= self.upper)):
            raise RetorqueError("the first guess of the parameters lies outside their bounds; move it inside")

    @property
    def robot(self) -> Robot:
        """Whose they are."""
        return self.selection.robot

    @property
    def span(self) -> Array:
        """(size,) between the bounds."""
        return self.upper - self.lower

    def whole(self, p: Array) -> Array:
        """The selection's vector of a free one."""
        out = self._base.copy()
        out[self.columns] = p
        return out

    def parameters(self, p: Array) -> Parameters:
        """All of the robot's parameters."""
        return self.selection.apply(self.whole(p))

    def clip(self, p: Array) -> Array:
        """Inside the bounds."""
        return np.minimum(np.maximum(p, self.lower), self.upper)
