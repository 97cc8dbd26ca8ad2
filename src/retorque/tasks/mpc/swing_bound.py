"""Which poles cannot be swung up at all: a bound on what a limited force on a cart can do.

With the pole's angle as the clock of one swing, the square of its speed obeys a first-order equation in which the force
enters with the sign of the cosine alone, once the drag on the cart is left out (the cart's own place and speed do not
act on the pole). More push in that sign means more speed at every later angle, so that the largest force with the sign
of -cos(angle) * speed swings highest, in each swing and hence in all. Where it never comes upright, nothing does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.physics.dynamics import make_dynamics
from retorque.tasks.mpc.mpc_task import MpcTask

UPRIGHT = 0.05
"""The pole stands within this [rad]."""
MARGIN = 1.1
"""By which the limit is multiplied: the drag that is left out is below a tenth of the force up to 20 m/s."""


def swings_up(task: MpcTask, cell: tuple[float, ...], *, margin: float = MARGIN) -> bool:
    """Whether the cart-pole's pole can come upright within the task's steps with these masses, by the bound."""
    parameters = task.free.parameters(np.array(cell))
    viscous = np.array(parameters.viscous)
    viscous[0] = 0.0
    dynamics = make_dynamics(task.robot, task.timestep, parameters=replace(parameters, viscous=viscous))
    force = margin * dynamics.input_limit
    x = np.array(task.start)
    for _ in range(task.steps):
        x = dynamics.step(x, -force if np.cos(x[1]) * x[3] >= 0.0 else force)
        if abs(np.angle(np.exp(1j * x[1]))) < UPRIGHT:
            return True
    return False
