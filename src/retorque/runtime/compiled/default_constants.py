"""The constants of the default adapter's core: its explanations, and what each means for the estimate."""

from __future__ import annotations

import numpy as np

from retorque.adapt.default import adapter as default
from retorque.adapt.default import (
    explanations,
    felt_torque,
    onset,
    reopening,
    snapshots,
    stillness,
    velocity_feedback,
    vibration,
)
from retorque.adapt.default.adapter import Default
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame
from retorque.runtime.compiled.structures import Constants
from retorque.work.array import Array

PAYLOAD_NUMBERS, JOINT_NUMBERS = 11, 4
"""What describes a payload with a common factor of the drives, and what a joint's own change."""


def default_constants(adapter: Default) -> Constants:
    """Everything that the default adapter's core needs beside `tam-recursive`'s."""
    robot, told, opened = adapter.robot, adapter._explanations, adapter._reopening
    hypotheses = (told._nothing, told._hand, told._arm, told._anything, told._steady, told.payload, *told.joints)
    hand_link, hand_place = _point(robot.end_effector, adapter._ideal)
    arm_link, arm_place = _point(told._links, adapter._ideal)
    payload_shift, payload_doubt = _payload(opened, adapter.model.size)
    joint_shift, joint_doubt, closed = _joints(adapter)
    return {
        "touch": adapter.touch,
        "snapshots": len(adapter._snapshots.means),
        "sudden": default.SUDDEN,
        "delayed": snapshots.DELAYED,
        "settled": default.SETTLED,
        "walk_every": default.WALK_EVERY,
        "hand_link": hand_link,
        "arm_link": arm_link,
        "carrier": told.columns.start // 10,
        "payload_doubts": payload_doubt.shape[1],
        "counts": np.array([h.mean.shape[1] for h in hypotheses]),
        "deviations": np.concatenate([np.sqrt(np.diagonal(h._prior)) for h in hypotheses]),
        "odds": np.array([h._odds for h in hypotheses]),
        "keep": np.array([h._keep for h in hypotheses]),
        "armature": adapter._ideal.model.armature,
        "closed_root": closed,
        "payload_shift": payload_shift,
        "payload_doubt": payload_doubt,
        "joint_shift": joint_shift,
        "joint_doubt": joint_doubt,
        "hand_place": hand_place,
        "arm_place": arm_place,
        "fade": told._nothing._fade,
        "weight": adapter._weight,
        "brief_samples": adapter._brief_samples,
        "brief_from": default.BRIEF_FROM,
        "brief_weight": adapter._brief_weight,
        "own_width": explanations.OWN_WIDTH,
        "inflation": reopening.INFLATION,
        "most_mass": told._most_mass,
        "reach": told._reach,
        "gone": explanations.GONE,
        "settling": explanations.SETTLING,
        "forgiven": explanations.FORGIVEN,
        "hopeless": explanations.HOPELESS,
        "round": explanations.ROUND,
        "most_gain": explanations.MOST_GAIN,
        "impossible": explanations.IMPOSSIBLE,
        "strange_mass": explanations.STRANGE_MASS,
        "strange_reach": explanations.STRANGE_REACH,
        "strange_gain": explanations.STRANGE_GAIN,
        "suspect": default.SUSPECT,
        "pushed": default.PUSHED,
        "clear": default.CLEAR,
        "creeping": default.CREEPING,
        "surprised": default.SURPRISED,
        "rising": onset.RISING,
        "lately": default.LATELY,
        "snapshot_every": snapshots.EVERY,
        "lasting": default.LASTING,
        "touched": default.TOUCHED,
        "again": default.AGAIN,
        "calm": default.CALM,
        "unseen": default.UNSEEN,
        "straddle": default.STRADDLE,
        "probation": default.PROBATION,
        "rest": stillness.REST,
        "certain": default.CERTAIN,
        "sure": default.SURE,
        "patience": default.PATIENCE,
        "wary": explanations.WARY,
        "behind": explanations.BEHIND,
        "worse": explanations.WORSE,
        "own_odds": default.OWN_ODDS,
        "full_factor": adapter._mismatch.full,
        "mismatch_share": adapter._mismatch._rate,
        "mismatch_floor": adapter._mismatch._floor,
        "abrupt": onset.ABRUPT,
        "watched": onset.WATCHED,
        "convinced": onset.CONVINCED,
        "ideal": onset.IDEAL,
        "ideal_run": onset.IDEAL_FOR,
        "turns": onset.TURNS,
        "counted": default.COUNTED,
        "made_good": default.MADE_GOOD,
        "pause": default.PAUSE,
        "lately_share": adapter._lately_share,
        "carried_share": default.CARRIED[0],
        "carried_mass": default.CARRIED[1],
        "still": stillness.STILL,
        "quick": stillness.QUICK,
        "shows": stillness.SHOWS,
        "drift_share": adapter._stillness.drift_share,
        "felt_fade": felt_torque.FADE,
        "felt_lead": felt_torque.LEAD,
        "felt_kept": felt_torque.FORGETS,
        "touch_size": default.TOUCH,
        "young_from": default.YOUNG[0],
        "young_to": default.YOUNG[1],
        "felt_share": default.FELT,
        "most_felt": default.MOST_FELT,
        "walk": default.WALK,
        "budget": default.BUDGET,
        "feedback_gain": adapter._feedback.gain,
        "feedback_most": adapter._feedback.most,
        "feedback_more": adapter._feedback.more,
        "ring_floor": adapter._feedback._vibration.floor,
        "ring_fast": adapter._feedback._vibration.shares[0],
        "ring_slow": adapter._feedback._vibration.shares[1],
        "ring_share": adapter._feedback._vibration.share,
        "ring_loud": vibration.LOUD,
        "feedback_leak": adapter.timestep / velocity_feedback.MEMORY,
        "ignored": velocity_feedback.IGNORED,
        "sent_margin": adapter._feedback.margin,
        "sent_share": adapter._feedback.share,
    }


def _point(frame: Frame, body: RigidBody) -> tuple[int, Array]:
    """The moving link that a frame is fixed to (-1: none), and where in its frame it is [m]."""
    weld = body._weld[frame.link]
    return body._joint_id[frame.link] - 1, weld.rotation @ np.array(frame.position) + weld.translation


def _payload(opened: reopening.Reopening, size: int) -> tuple[Array, Array]:
    """Shift of the estimate for each of a payload's numbers (size, 11), and doubt that comes with any (size, m)."""
    nothing = np.zeros((PAYLOAD_NUMBERS, PAYLOAD_NUMBERS))
    shift = np.stack([opened.payload(unit, nothing).shift for unit in np.eye(PAYLOAD_NUMBERS)], axis=-1)
    return shift, opened.payload(nothing[0], nothing).doubt[:, PAYLOAD_NUMBERS:]


def _joints(adapter: Default) -> tuple[Array, Array, Array]:
    """The same of each joint in its own unknowns, (n, F, 4) and (n, F, F), and its first covariance root (n, F, F)."""
    opened, n, features = adapter._reopening, adapter.robot.n, adapter.model.joint_mean.shape[1]
    nothing = np.zeros((JOINT_NUMBERS, JOINT_NUMBERS))
    shift, doubt = np.zeros((n, features, JOINT_NUMBERS)), np.zeros((n, features, features))
    root = opened.closed_root(adapter.model.gain_std.max(axis=-1) / adapter.gain_doubt)
    closed = np.zeros((n, features, features))
    for j in range(n):
        own = slice(j * features, (j + 1) * features)
        for k, unit in enumerate(np.eye(JOINT_NUMBERS)):
            shift[j, :, k] = opened.joint(j, unit, nothing).shift[own]
        doubt[j] = opened.joint(j, nothing[0], nothing).doubt[own, JOINT_NUMBERS:]
        closed[j] = root[own, own]
    return shift, doubt, closed
