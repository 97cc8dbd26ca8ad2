"""`retorque mpc`."""

from __future__ import annotations

from retorque.cli.verb import Verb

MPC = Verb(
    summary="plan and identify at once on a task of the paper: cartpole, double-pendulum, arm-centre, arm-inertia, rod",
    example="retorque mpc cartpole --policy information --render cartpole.png",
    module="bench.mpc.one_run",
)
