"""Motions crossed with physical conditions: every motion is replayed on every target (TAM, F.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.features import history_rows
from retorque.adapt.tam.preset import Preset
from retorque.adapt.tam.training.labels import state_labels, teacher
from retorque.control.action import JointAction
from retorque.control.controller import Controller
from retorque.control.joint_waypoints import JointWaypoints
from retorque.control.reference import Reference
from retorque.loop.loop import Loop
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.work.array import Array

STIFFNESS, DAMPING = 100.0, 20.0
"""Feedback of the replay [N·m/rad, N·m·s/rad], as a share of each joint's inertia seen at home where that is less."""
STATES = 20
"""States of the second half that are predicted."""
AT_ONCE = 512
"""Replays that are simulated together: the record of more would need gigabytes."""


@dataclass(frozen=True)
class Bank:
    """Histories of `conditions` x `trajectories` replays, conditions first, and what must be predicted of each."""

    context: Context
    patches: Array
    """(trials, columns, n, numbers) of the first half."""
    window: Array
    """(states, trials, 3, n, L)"""
    nominal: Array
    """(states, trials, n) [N·m]"""
    wanted: Array
    """(states, trials, n) the teacher's correction [N·m]."""

    def torque_errors(self, adaptor: FastAdaptor) -> Array:
        """Errors of the corrections, (states, trials, n) [N·m]."""
        errors = np.empty_like(self.wanted)
        for index, (window, nominal) in enumerate(zip(self.window, self.nominal, strict=True)):
            q, qd, torque = window[:, 0], window[:, 1], window[:, 2]
            ideal, probes = self.context.ideal_response(q[..., 0], qd[..., 0], nominal)
            errors[index] = adaptor.correction(q, qd, torque, nominal, ideal, probes) - self.wanted[index]
        return errors


def waypoint_motions(context: Context, trajectories: int, duration: float, seed: int) -> Reference:
    """Random motions of the joints."""
    robot = context.robot
    return JointWaypoints.sample(
        robot.home,
        robot.lower,
        robot.upper,
        0.5 * context.profile.waypoint_delta,
        trajectories,
        duration,
        seed,
        waypoints=5,
        pause_probability=0.0,
    )


def crossed_bank(
    context: Context, preset: Preset, conditions: int, motions: Reference, duration: float, seed: int
) -> Bank:
    """Replay motions on random targets with inverse-dynamics feed-forward and stiff feedback.

    The first half of each motion is encoded, the second half is predicted.

    Args:
        context: of the robot.
        preset: of the network.
        conditions: targets.
        motions: joint-space motions (trajectories, n).
        duration: of each [s].
        seed: of the targets.
    """
    hidden = Parameters.sample(context.robot, context.profile, conditions, seed)
    first = motions.at(0.0)
    assert isinstance(first, JointAction)
    trajectories = len(first.position)
    at_once = max(1, AT_ONCE // trajectories)
    blocks = [np.arange(start, min(start + at_once, conditions)) for start in range(0, conditions, at_once)]
    parts = [
        _replayed(context, preset, hidden[block], (len(block), trajectories), motions, duration) for block in blocks
    ]
    patches, window, nominal, wanted = zip(*parts, strict=True)
    along = {"window": window, "nominal": nominal, "wanted": wanted}
    return Bank(context, np.concatenate(patches), **{k: np.concatenate(v, axis=1) for k, v in along.items()})


def _replayed(
    context: Context, preset: Preset, hidden: Parameters, counts: tuple[int, int], motions: Reference, duration: float
) -> tuple[Array, Array, Array, Array]:
    """Patches, window, nominal torques and what is wanted of some targets; counts: these, and the motions."""
    robot, body, (conditions, trajectories) = context.robot, context.body, counts
    hidden = hidden[np.repeat(np.arange(conditions), trajectories)]
    motion = Accelerated(motions, 1e-3, np.tile(np.arange(trajectories), conditions))
    target = Target(robot, hidden, threads=1)
    ticks = round(duration / target.timestep)
    record = np.empty((3, ticks, conditions * trajectories, robot.n))
    acceleration = np.empty((ticks, conditions * trajectories, robot.n))
    target.reset(motion.at(0.0).position)
    loop = Loop(target, motion, Replay(body, hidden))
    for tick in range(ticks):
        done = loop.tick()
        record[:, tick] = done.state.position, done.state.velocity, done.state.torque
        acceleration[tick] = motion.at(tick * target.timestep).acceleration
    half = ticks // 2
    at = np.linspace(half + preset.window, ticks - 1, STATES).astype(int)
    back = at[:, None] - np.arange(preset.window)
    window = np.moveaxis(record[:, back], (0, 2), (2, -1))  # (states, trials, 3, n, L)
    q, qd = record[0, at].swapaxes(0, 1), record[1, at].swapaxes(0, 1)
    nominal = body.inverse_dynamics(q, qd, acceleration[at].swapaxes(0, 1))
    label = state_labels(context, hidden, q, qd, nominal, np.zeros_like(nominal))
    label.update(dead_zone=hidden.dead_zone[:, None], torque_scale=hidden.torque_scale[:, None])
    wanted = (teacher(np, label, nominal) - nominal).swapaxes(0, 1)
    return _patches(context, preset, record[:, :half]), window, nominal.swapaxes(0, 1), wanted


class Accelerated(Reference):
    """Joint-space motions, repeated, whose actions also say how they accelerate over a tick.

    Args:
        motion: the motions (trajectories, n).
        timestep: length of a tick [s].
        order: which of them each trial follows, (trials,).
    """

    def __init__(self, motion: Reference, timestep: float, order: Array):
        self.motion, self.duration, self._timestep, self._order = motion, motion.duration, timestep, order

    def at(self, time: float) -> JointAction:
        now, then = self.motion.at(time), self.motion.at(time + self._timestep)
        assert isinstance(now, JointAction) and isinstance(then, JointAction)
        acceleration = (then.velocity - now.velocity) / self._timestep
        return JointAction(now.position[self._order], now.velocity[self._order], acceleration[self._order])


class Replay(Controller[JointAction]):
    """Inverse dynamics of the hidden parameters along the reference, and stiff feedback.

    Args:
        body: the ideal robot's algebra.
        hidden: the targets' parameters, (trials, ...).
    """

    def __init__(self, body: RigidBody, hidden: Parameters):
        self._body, self._hidden = body, hidden
        self._share = np.minimum(1.0, np.diagonal(body.mass_matrix(body.robot.home)) / 0.1)

    def command(self, state: State, action: JointAction) -> Command:
        q, qd, qdd = action.position, action.velocity, action.acceleration
        assert qdd is not None
        back = STIFFNESS * (q - state.position) + DAMPING * (qd - state.velocity)
        return Command(torque=inverse_torque_command(self._body, self._hidden, q, qd, qdd) + self._share * back)


def _patches(context: Context, preset: Preset, record: Array) -> Array:
    """The patch of every column of histories (3, ticks, trials, n), the first that has seen something onwards."""
    h = preset.half_window
    columns = (record.shape[1] - h) // preset.stride
    ticks = columns * preset.stride
    q, qd, torque = (np.pad(x[: ticks + h], ((h, 0), (0, 0), (0, 0))) for x in record)
    valid = np.arange(len(q))[:, None] >= h
    fast, slow = history_rows(context, preset, q, qd, torque, np.broadcast_to(valid, q.shape[:2]), 1e-3)
    found = []
    for rows, length, step in (
        (fast, preset.patch_rows, preset.stride_rows),
        (slow, preset.patch_rows // max(preset.slow, 1), preset.stride_rows // max(preset.slow, 1)),
    ):
        if rows.shape[1] == 0:
            continue
        padded = np.pad(rows, ((0, 0), (length, 0), (0, 0), (0, 0)))
        cut = [padded[:, step * k : step * k + length].swapaxes(1, 2) for k in range(columns + 1)]
        found.append(np.stack([part.reshape(*part.shape[:2], -1) for part in cut], axis=1))
    return np.concatenate(found, axis=-1)
