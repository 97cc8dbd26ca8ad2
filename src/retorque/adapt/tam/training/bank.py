"""Motions crossed with physical conditions: every motion is replayed on every target (TAM, F.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.features import history_rows
from retorque.adapt.tam.preset import Preset
from retorque.adapt.tam.training.labels import state_labels, teacher
from retorque.control.joint_waypoints import JointWaypoints
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.simulate.target import Target
from retorque.work.array import Array

STIFFNESS, DAMPING = 100.0, 20.0
"""Feedback of the replay [N·m/rad, N·m·s/rad], as a share of each joint's inertia seen at home where that is less."""
STATES = 20
"""States of the second half that are predicted."""


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


def crossed_bank(
    context: Context, preset: Preset, conditions: int, trajectories: int, duration: float, seed: int
) -> Bank:
    """Replay random motions on random targets with inverse-dynamics feed-forward and stiff feedback.

    The first half of each motion is encoded, the second half is predicted.
    """
    robot, body = context.robot, context.body
    hidden = Parameters.sample(robot, context.profile, conditions, seed)
    hidden = hidden[np.repeat(np.arange(conditions), trajectories)]
    one = JointWaypoints.sample(
        robot.home,
        robot.lower,
        robot.upper,
        0.5 * context.profile.waypoint_delta,
        trajectories,
        duration,
        seed + 1,
        waypoints=5,
        pause_probability=0.0,
    )
    share = np.minimum(1.0, np.diagonal(body.mass_matrix(robot.home)) / 0.1)
    target = Target(robot, hidden, threads=1)
    ticks = round(duration * 1e3)
    record = np.empty((3, ticks, conditions * trajectories, robot.n))
    reference = np.empty((ticks + 1, 2, trajectories, robot.n))
    for tick in range(ticks + 1):
        action = one.at(tick * 1e-3)
        reference[tick] = action.position, action.velocity
    acceleration = np.diff(reference[:, 1], axis=0) * 1e3
    order = np.tile(np.arange(trajectories), conditions)
    state = target.reset(reference[0, 0][order])
    for tick in range(ticks):
        q, qd = reference[tick][:, order]
        command = inverse_torque_command(body, hidden, q, qd, acceleration[tick][order])
        command = command + share * (STIFFNESS * (q - state.position) + DAMPING * (qd - state.velocity))
        record[:, tick] = state.position, state.velocity, state.torque
        state = target.step(command)
    half = ticks // 2
    at = np.linspace(half + preset.window, ticks - 1, STATES).astype(int)
    back = at[:, None] - np.arange(preset.window)
    window = np.moveaxis(record[:, back], (0, 2), (2, -1))  # (states, trials, 3, n, L)
    q, qd = record[0, at].swapaxes(0, 1), record[1, at].swapaxes(0, 1)
    nominal = body.inverse_dynamics(q, qd, acceleration[at][:, order].swapaxes(0, 1))
    label = state_labels(context, hidden, q, qd, nominal, np.zeros_like(nominal))
    label.update(dead_zone=hidden.dead_zone[:, None], torque_scale=hidden.torque_scale[:, None])
    wanted = (teacher(np, label, nominal) - nominal).swapaxes(0, 1)
    return Bank(context, _patches(context, preset, record[:, :half]), window, nominal.swapaxes(0, 1), wanted)


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
