"""Training data: random waypoint motions of targets with hidden parameters, with what the teacher needs (TAM, B.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.features import history_rows
from retorque.adapt.tam.preset import Preset
from retorque.adapt.tam.training.labels import state_labels
from retorque.control.action import JointAction
from retorque.control.controller import Controller
from retorque.control.joint_impedance import JointImpedance
from retorque.control.joint_waypoints import JointWaypoints
from retorque.loop.loop import Loop
from retorque.physics.default_profile import critical_damping
from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.simulate.effects import EFFECTS, effect
from retorque.simulate.pulses import Pulses
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.work.array import Array

FASTEST = 40.0
"""A rollout with a joint faster than this is thrown away [rad/s]."""
WANDER_KEPT, WANDER_STEP = 1.0 - 1e-3 / 0.5, 0.3
"""Command noise that wanders keeps this share of itself each tick, and takes steps of this share of its size."""


@dataclass(frozen=True, kw_only=True)
class RolloutSettings:
    """How rollouts are made."""

    rollouts: int = 64
    """Rollouts in a shard."""
    states: int = 3
    """States kept for each column of tokens."""
    waypoints: int = 12
    """Waypoints of each motion."""
    pause: float = 0.3
    """Probability that a waypoint is the last one again."""
    contact: float = 0.5
    """Share of the rollouts with external pulses."""
    contact_share: float = 0.15
    """Largest standard deviation of a pulse, as a share of the torque limit."""
    noisy_command: float = 0.5
    """Share of the rollouts with noise on the command."""
    perfect_sensors: float = 0.25
    """Share of the rollouts with perfect sensors."""
    unmodelled: float = 0.0
    """Probability that all rollouts of a shard have an effect that no parameter describes."""
    other_armature: float = 0.5
    """Probability that the ideal robot of a shard has other armatures than its card: what is hidden stays the same, and
    the network meets ideal robots that are far heavier or lighter than their targets."""


def generate(context: Context, preset: Preset, settings: RolloutSettings, seed: int) -> dict[str, Array]:
    """One shard: `settings.rollouts` motions of one robot, 12 s each, or a few less where some ran away.

    Returns:
        fast, slow: rows of history (rollouts, rows, n, ...).
        window: the adaptor's last ticks (rollouts, columns, states, 3, n, L): position, velocity, reported torque.
        labels of `state_labels` (rollouts, columns, states, ...), and dead_zone, torque_scale (rollouts, n, 2),
        parameters (rollouts, ...).
    """
    rng = np.random.default_rng(seed)
    robot, profile, count = context.robot, context.profile, settings.rollouts
    parameters = Parameters.sample(robot, profile, count, rng)
    ticks = preset.columns * preset.stride
    record = _run(context, parameters, settings, ticks, rng)
    good = np.all(np.isfinite(record["velocity"]), axis=(0, 2))
    good &= np.max(np.abs(np.nan_to_num(record["velocity"])), axis=(0, 2)) < FASTEST
    record = {name: array[:, good] for name, array in record.items()}
    parameters = parameters[good]
    h = preset.half_window
    edge = ((h, h), (0, 0), (0, 0))
    q, qd, reported = (np.pad(record[name], edge) for name in ("q", "qd", "reported"))
    valid = np.pad(np.ones(record["q"].shape[:2], dtype=bool), edge[:2])
    fast, slow = history_rows(context, preset, q, qd, reported, valid, 1e-3)
    at = state_ticks(preset, settings.states, len(parameters.payload), rng)
    rows = np.arange(len(at))[:, None, None]
    kept = {name: record[name][at, rows] for name in ("position", "velocity", "command", "external")}
    flat = {name: array.reshape(len(at), -1, robot.n) for name, array in kept.items()}
    label = state_labels(context, parameters, flat["position"], flat["velocity"], flat["command"], flat["external"])
    lead = at.shape
    shard = {name: array.reshape(*lead, *array.shape[2:]) for name, array in label.items()}
    back = at[..., None] - np.arange(preset.window)
    seen = [record[name][back, rows[..., None]] for name in ("q", "qd", "reported")]
    shard["window"] = np.stack(seen, axis=3).swapaxes(-1, -2)
    shard.update(fast=fast, slow=slow, dead_zone=parameters.dead_zone, torque_scale=parameters.torque_scale)
    shard["parameters"] = parameters.flatten()
    return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in shard.items()}


def state_ticks(preset: Preset, states: int, trials: int, rng: np.random.Generator) -> Array:
    """Random ticks at which each column's latent is in use, (trials, columns, states)."""
    ready = np.array([column_ready(preset, k) for k in range(preset.columns + 1)])
    low = np.maximum(ready[:-1], preset.window)
    high = np.minimum(ready[1:] + preset.stride // 10, preset.columns * preset.stride - 1)
    share = rng.uniform(size=(trials, preset.columns, states))
    return (low[:, None] + share * (high - low)[:, None]).astype(int)


def column_ready(preset: Preset, column: int) -> int:
    """The tick at which a column's tokens can be made: its patch has ended and the derivative fit has its context."""
    return 0 if column == 0 else preset.stride * column + preset.half_window


def _run(
    context: Context, parameters: Parameters, settings: RolloutSettings, ticks: int, rng: np.random.Generator
) -> dict[str, Array]:
    """Drive the targets; (ticks, trials, n) of what they report, their true state, the command and the push."""
    robot, profile, count = context.robot, context.profile, settings.rollouts
    seeds = rng.integers(0, 2**31, 4)
    effects = []
    if rng.uniform() < settings.unmodelled:
        effects = [effect(str(rng.choice(list(EFFECTS))))]
    target = Target(
        robot, parameters, sensors=_sensors(context, settings, rng), effects=effects, seed=int(seeds[0]), threads=1
    )
    duration = ticks * 1e-3
    reference = JointWaypoints.sample(
        robot.home,
        robot.lower,
        robot.upper,
        profile.waypoint_delta,
        count,
        duration,
        int(seeds[1]),
        waypoints=settings.waypoints,
        pause_probability=settings.pause,
    )
    soft = rng.uniform(size=(count, 1)) < profile.kp_small_probability
    scale = np.where(soft, rng.uniform(*profile.kp_small, (count, 1)), rng.uniform(*profile.kp_large, (count, 1)))
    stiffness = profile.stiffness * scale
    damping = critical_damping(robot, stiffness) * rng.uniform(0.5, 1.5, (count, 1))
    share = np.where(rng.uniform(size=count) < settings.contact, rng.uniform(0.0, settings.contact_share, count), 0.0)
    pulses = Pulses.sample(robot, count, duration, int(seeds[2]), share=1.0)
    pulses = Pulses(start=pulses.start, duration=pulses.duration, torque=pulses.torque * share[:, None, None])
    noisy = (rng.uniform(size=(count, 1)) < settings.noisy_command) * rng.uniform(0.0, 2.5, (2, count, 1))
    white, walk = noisy[0] * profile.command_noise_white, noisy[1] * profile.command_noise_walk
    controller = NoisyImpedance(JointImpedance(robot, stiffness, damping), white, walk, rng)
    shape = (ticks, count, robot.n)
    record = {name: np.empty(shape) for name in ("q", "qd", "reported", "position", "velocity", "command", "external")}
    target.reset(reference.at(0.0).position)
    loop = Loop(target, reference, controller)
    for tick in range(ticks):
        external = pulses.at(tick * target.timestep)
        target.push(external)
        record["position"][tick], record["velocity"][tick] = target.position, target.velocity
        state = loop.tick().state
        record["q"][tick], record["qd"][tick], record["reported"][tick] = state.position, state.velocity, state.torque
        record["command"][tick], record["external"][tick] = target.command, external
    return record


class NoisyImpedance(Controller[JointAction]):
    """Joint impedance, and a command that is shaken: white noise, and noise that wanders.

    Args:
        impedance: what is shaken.
        white: standard deviation a tick (trials, n) [N·m].
        walk: size of what wanders (trials, n) [N·m].
        rng: where the noise comes from.
    """

    def __init__(self, impedance: JointImpedance, white: Array, walk: Array, rng: np.random.Generator):
        self._impedance, self._white, self._walk, self._rng = impedance, white, walk, rng
        self._wander = np.zeros_like(white)

    def command(self, state: State, action: JointAction) -> Command:
        finite = State(state.time, np.nan_to_num(state.position), np.nan_to_num(state.velocity), state.torque)
        torque = self._impedance.command(finite, action).torque
        assert torque is not None
        shape = self._wander.shape
        self._wander = WANDER_KEPT * self._wander + self._walk * WANDER_STEP * self._rng.standard_normal(shape)
        return Command(torque=torque + self._white * self._rng.standard_normal(shape) + self._wander)


def _sensors(context: Context, settings: RolloutSettings, rng: np.random.Generator) -> SensorSettings:
    count = settings.rollouts
    sampled = SensorSettings.sample(context.profile, count, rng)
    good = rng.uniform(size=count) < settings.perfect_sensors
    return SensorSettings(**{name: np.where(good, 0, value) for name, value in vars(sampled).items()})
