"""Every constant of a core, read from the Python adapter that it stands in for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.adapt.default.adapter import Default
from retorque.adapt.direct import Direct
from retorque.adapt.recursive import equation, linear_model, recursive_contact
from retorque.adapt.recursive.adapter import Recursive
from retorque.adapt.recursive.recursive_contact import RecursiveContact
from retorque.adapt.recursive.unknowns import BASIS
from retorque.adapt.tam.adapter import (
    FineTuned,
    NoResidual,
    NoTorqueResidual,
    PrivilegedLatent,
    ShortWindow,
    TamAdapter,
)
from retorque.adapt.tam_recursive import adapter as tam_recursive
from retorque.adapt.tam_recursive import residual_network, residuals
from retorque.adapt.tam_recursive.adapter import TamRecursive
from retorque.loop import clock, history
from retorque.loop.adapter import Adapter
from retorque.physics.inertia import robot_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.runtime.compiled.default_constants import default_constants
from retorque.runtime.compiled.structures import Constants
from retorque.runtime.compiled.tam_constants import tam_constants
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

DIRECT, RECURSIVE, RECURSIVE_CONTACT, TAM, TAM_RECURSIVE, DEFAULT = range(6)
"""As in the header."""


def has_core(adapter: Adapter) -> bool:
    """Whether this very kind of adapter was ported: one derived from it may do anything else."""
    return type(adapter) in MADE


def constants_of(adapter: Adapter) -> Constants:
    """Everything that a core needs to do what this adapter does; an adapter without one is refused."""
    made = MADE.get(type(adapter))
    if made is None:
        known = sorted(kind.__name__ for kind in MADE)
        raise RetorqueError(
            f"{type(adapter).__name__} has no compiled core; it runs in NumPy ({', '.join(known)} have one)"
        )
    kind, parts = made
    return {
        "adapter": kind,
        "learn_every": adapter.learn_every,
        "history": 1,
        "bridged": history.BRIDGED,
        "settled": clock.SETTLED,
        "farthest": float(clock.FARTHEST),
        "tracking": clock.TRACKING,
        "timestep": adapter.timestep,
        "robot": robot_constants(adapter.robot),
        **parts(adapter),
    }


def robot_constants(robot: Robot) -> Constants:
    """A robot's tree, as Pinocchio has it."""
    model = RigidBody(robot).model
    places = [model.jointPlacements[index + 1] for index in range(robot.n)]
    return {
        "n": robot.n,
        "parent": np.array([model.parents[index + 1] - 1 for index in range(robot.n)]),
        "prismatic": np.array([joint.kind == "prismatic" for joint in robot.joints]),
        "axis": np.array([_axis(joint.axis) for joint in robot.joints]),
        "rotation": np.array([place.rotation for place in places]),
        "position": np.array([place.translation for place in places]),
        "inertial": robot_inertia(robot),
        "armature": robot.armature,
        "gravity": np.array(robot.gravity),
    }


def _axis(axis: tuple[float, ...]) -> Array:
    """A unit axis; one that is all but aligned is aligned, as in `RigidBody`."""
    given = np.array(axis)
    if np.isclose(np.max(given), 1.0, atol=1e-12):
        return np.eye(3)[int(np.argmax(np.abs(given)))]
    return given / np.linalg.norm(given)


def _recursive(adapter: Adapter) -> Constants:
    assert isinstance(adapter, Recursive)
    s, m = adapter.settings, adapter.model
    return {
        "history": adapter.history.ticks,
        "recursive": {
            "size": m.size,
            "directions": m.directions,
            "samples": adapter._samples,
            "first_samples": adapter._first_samples,
            "stride": adapter._stride,
            "groups": equation.GROUPS,
            "apart": -(-(adapter._samples - 1) // adapter._stride),
            "delay": recursive_contact.DELAY,
            "joint_mean": m.joint_mean,
            "joint_root": m.joint_root,
            "joint_size": np.linalg.norm(m.joint_root, axis=-1),
            "inertial_mean": m.inertial_mean,
            "inertial_root": m.inertial_root,
            "low": m.low,
            "high": m.high,
            "torque_width": m.torque_width,
            "scale": adapter._scale,
            "strength": adapter._strength if isinstance(adapter, RecursiveContact) else np.ones(m.n),
            "basis": BASIS,
            "sign_width": linear_model.SIGN_WIDTH,
            "report_delay": linear_model.DELAY,
            "sane": equation.SANE,
            "shared": equation.SHARED,
            "noise": s.noise,
            "noise_floor": s.noise_floor,
            "noise_memory": s.noise_memory,
            "forgetting": s.forgetting,
            "disturbance": s.disturbance,
            "disturbance_time": adapter.disturbance_time,
            "disturbance_memory": s.disturbance_memory,
            "residual_floor": 0.3 * s.noise_floor,
            "first_evidence": -8.0 if adapter.card is None else 8.0,
            "suspect": recursive_contact.SUSPECT,
            "clear": recursive_contact.CLEAR,
            "calm": recursive_contact.CALM,
            "longest": recursive_contact.LONGEST,
            "lead": recursive_contact.LEAD,
            "authority": adapter.authority if isinstance(adapter, RecursiveContact) else 0.0,
        },
    }


def _tam_recursive(adapter: Adapter) -> Constants:
    assert isinstance(adapter, TamRecursive)
    w = adapter._network._w  # (inputs, outputs) each
    layers = adapter._network._layers
    return {
        **_recursive(adapter),
        "residual": {
            "features": residuals.FEATURES,
            "taps": residuals.TAPS,
            "hidden": w["embed.weight"].shape[1],
            "layers": layers,
            "block": adapter.residuals.block,
            "fine": residuals.FINE,
            "coarse": np.array(residuals.COARSE),
            "memory": tam_recursive.MEMORY,
            "embed": np.vstack([w["embed.weight"], w["embed.bias"]]),
            "combine": w["combine.weight"],
            "summary": np.vstack([w["summary.weight"], w["summary.bias"]]),
            "stack": np.stack([np.vstack([w[f"layers.{k}.weight"], w[f"layers.{k}.bias"]]) for k in range(layers)]),
            "head": np.vstack([w["head.weight"], w["head.bias"]]),
            "unit": adapter.unit,
            "offset": residual_network.OFFSET,
            "noise_memory": residuals.NOISE_MEMORY,
            "most_own": tam_recursive.MOST_OWN,
            "most_external": tam_recursive.MOST_EXTERNAL,
            "pushed": tam_recursive.PUSHED,
            "clearly": tam_recursive.CLEARLY,
            "surprising": tam_recursive.SURPRISING,
        },
    }


def _default(adapter: Adapter) -> Constants:
    assert isinstance(adapter, Default)
    return {**_tam_recursive(adapter), "defaults": default_constants(adapter)}


def _nothing(adapter: Adapter) -> Constants:
    return {}


MADE: dict[type[Adapter], tuple[int, Callable[[Adapter], Constants]]] = {
    Direct: (DIRECT, _nothing),
    Recursive: (RECURSIVE, _recursive),
    RecursiveContact: (RECURSIVE_CONTACT, _recursive),
    TamRecursive: (TAM_RECURSIVE, _tam_recursive),
    Default: (DEFAULT, _default),
    **dict.fromkeys(
        (TamAdapter, FineTuned, NoTorqueResidual, NoResidual, ShortWindow, PrivilegedLatent), (TAM, tam_constants)
    ),
}
"""The adapters that have a core: its kind, and what makes its constants."""
NETWORKS = tuple(kind for kind, (number, _) in MADE.items() if number in (TAM, TAM_RECURSIVE, DEFAULT))
"""Those of them with a network inside."""
