"""Whether a payload may be believed: logs that are swapped, masses no arm could carry, gains nobody would sell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.identify.payload_estimate import PayloadEstimate
from retorque.identify.verdict.verdict import Case, Verdict
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

SURPRISING = 3.0
"""Standard deviations that a gain may be from its prior."""
SURE = 3.0
"""Standard deviations that a mass must be below zero before the logs are called swapped."""
RATED = 0.4
"""Rating of an arm over what its joints can just hold: UR10e 0.37, Panda 0.33, iiwa 14 0.37."""
STRETCHED = 64
"""Poses in which a payload is tried against the joints' torque limits."""


def judge_payload(
    found: PayloadEstimate,
    robot: Robot,
    known_mass: float | None,
    channels: tuple[tuple[str, str], ...] = (),
    exchanged: Callable[[], PayloadEstimate] | None = None,
) -> Verdict:
    """The verdict on a payload.

    Args:
        found: the estimate.
        robot: the arm.
        known_mass: the mass that was weighed, where the gains were asked for [kg].
        channels: causes and sentences that the raw channels gave away.
        exchanged: the estimate with the two logs the other way round; asked for only where the gains look wrong.
    """
    case = Case()
    for cause, sentence in channels:
        case.add(2, sentence, cause)
    if found.free_mass < -SURE * found.free_mass_std:
        words = f"the loaded log is lighter than the empty one by {-found.free_mass:.2f} kg: are the two swapped?"
        case.add(2, words, "swapped logs")
    most = capacity(robot)
    if known_mass is None and found.mass - 2.0 * found.mass_std > RATED * most:
        words = f"{found.mass:.1f} kg is beyond what '{robot.name}' is made to carry (about {RATED * most:.1f} kg)"
        case.add(2 if found.mass > most else 1, f"{words}: check units and drive gains", "scale")
    odd = np.flatnonzero(found.gain_surprise > SURPRISING)
    if len(odd) and known_mass is None and not case.causes:
        other = None if exchanged is None else exchanged()
        if other is not None and other.mass > SURE * other.mass_std and np.all(other.gain_surprise <= SURPRISING):
            words = f"the other way round the logs say {other.mass:.2f} kg and fit the gains: are they swapped?"
            case.add(2, words, "swapped logs")
        else:
            names = ", ".join(robot.joint_names[j] for j in odd)
            case.add(1, f"the drive gains of {names} would be far from what was given: check them", "scale")
    if known_mass is not None and np.any(found.gain_scale <= 0.0):
        case.add(2, "a drive gain came out negative: check the signs of the currents", "sign")
    evidence = {
        "free_mass_kg": found.free_mass,
        "free_mass_std_kg": found.free_mass_std,
        "capacity_kg": most if np.isfinite(most) else None,
        "gain_surprise_std": found.gain_surprise.tolist(),
    }
    return case.end(evidence)


def capacity(robot: Robot, seed: int = 0) -> float:
    """The largest mass at the payload mount whose weight every joint can hold in most poses [kg]; infinite if unknown.

    Makers rate arms well below that: what no joint can hold is no payload.
    """
    if not np.any(np.isfinite(robot.torque_limit)):
        return float("inf")
    rng = np.random.default_rng(seed)
    lower = np.where(np.isfinite(robot.lower), robot.lower, -np.pi)
    upper = np.where(np.isfinite(robot.upper), robot.upper, np.pi)
    q = rng.uniform(lower, upper, (STRETCHED, robot.n))
    body = RigidBody(robot)
    weight = np.array(robot.gravity)
    torque = np.abs(np.einsum("...an,a->...n", body.jacobian(robot.payload_mount, q)[..., :3, :], weight))
    room = np.maximum(robot.torque_limit - np.abs(body.gravity(q)), 0.0)
    return float(np.median(np.min(room / np.maximum(torque, 1e-9), axis=1)))
