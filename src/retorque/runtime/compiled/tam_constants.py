"""The constants of TAM's core: weights turned for the C side, and what is known of the robot beforehand."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam import derivative, encoder, fast_adaptor, features, trim
from retorque.adapt.tam.adapter import ShortWindow, TamAdapter
from retorque.adapt.tam.adaptor_rows import BENDS, NEWEST_BENDS, RowLayout
from retorque.adapt.tam.preset import Preset
from retorque.loop.adapter import Adapter
from retorque.runtime.compiled.structures import Constants
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def tam_constants(adapter: Adapter) -> Constants:
    """Everything that TAM's core needs beside the robot."""
    assert isinstance(adapter, TamAdapter)
    p, context = adapter.preset, adapter.context
    if p.as_published:
        raise RetorqueError(f"weights of preset '{p.name}' run in NumPy only; the compiled core has our inputs")
    layout = RowLayout(p.window)
    return {
        "history": adapter.history.ticks,
        "tam": {
            **{name: getattr(p, name) for name in SIZES},
            "wide": p.expand * p.width,
            "factorised": int(p.factorised),
            "fast_size": features.fast_size(p),
            "slow_size": features.slow_size(p),
            "inputs": layout.mean,
            "basis_rows": layout.rows - layout.basis.start,
            "carrier": context._columns.start // 10,
            "trimmed": int(adapter.trimmed),
            "encoded": int(not isinstance(adapter, ShortWindow)),
            "span": trim.SPAN,
            "every": trim.EVERY,
            "seen": np.concatenate(features.hidden_features(p)),
            **_encoder(adapter, p),
            **_adaptor(adapter, p, layout),
            "limits": layout.limits(context, 1).T,
            "unit": context.unit,
            "load": context.load,
            "armature_range": context.armature_range,
            "armature_shift": context.armature_shift,
            "payload": context._payload,
            "probe_scale": context.probe_scale,
            "newest_bends": NEWEST_BENDS,
            "bends": BENDS,
            "jump": fast_adaptor.JUMP,
            "idle": features.IDLE_TORQUE,
            "bound": features.BOUND,
            "epsilon": float(encoder.EPSILON),
            "position_weight": derivative.POSITION_WEIGHT,
            "velocity_weight": derivative.VELOCITY_WEIGHT,
            "ridge": derivative.RIDGE,
            "fewest": derivative.FEWEST,
            "trim_time": trim.TIME,
            "trim_most": trim.MOST,
            "trim_surprise": trim.SURPRISE,
        },
    }


SIZES = (
    "average",
    "patch_rows",
    "stride_rows",
    "half_window",
    "slow",
    "columns",
    "width",
    "layers",
    "heads",
    "latent",
    "window",
    "hidden",
    "depth",
    "embed",
)
"""Taken from the preset as they are."""


def _turned(weights: dict[str, Array], name: str) -> Array:
    """A layer's weights (inputs, outputs), with the bias as one more row where it has one."""
    bias = weights.get(f"{name}.bias")
    turned = weights[f"{name}.weight"].T
    return turned if bias is None else np.vstack([turned, bias])


def _encoder(adapter: TamAdapter, p: Preset) -> Constants:
    w, e = adapter.encoder._w, adapter.encoder

    def stacked(name: str, *, layer: bool = True) -> Array:
        each = [f"layers.{index}.{name}" for index in range(p.layers)]
        return np.stack([_turned(w, key) if layer else w[key] for key in each])

    over_joints = ("joint_norm", "joint_read", "joint_write") if p.factorised else ()
    found: dict[str, Array] = {
        "patch": _turned(w, "patch"),
        "token": _turned(w, "token"),
        "base": e._base,
        "frequency": e._frequency,
        "time_norm": stacked("time.norm", layer=False),
        "time_read": stacked("time.read"),
        "time_write": stacked("time.write"),
        "norm": stacked("norm", layer=False),
        "up": stacked("up"),
        "down": stacked("down"),
        "last_norm": w["norm"],
        "to_latent": _turned(w, "latent"),
    }
    for name in over_joints:
        found[name] = stacked(name.replace("_", "."), layer=not name.endswith("norm"))
    return found


def _adaptor(adapter: TamAdapter, p: Preset, layout: RowLayout) -> Constants:
    w = adapter.adaptor._w
    *layers, last = (_turned(w, f"layers.{index}") for index in range(p.depth))
    head = w["head.weight"][0]
    # The last layer and the head are one vector over the state, nothing, the layer's inputs, and one.
    joined = np.concatenate([head, [0.0], last @ head])
    joined[-1] += w["head.bias"][0]
    return {
        "embedding": layout.embedding(w).T,
        "combine": _turned(w, "combine"),
        "summary": _turned(w, "summary"),
        "stack": np.stack(layers) if layers else np.zeros(1),
        "head": joined,
        "modulate": _turned(w, "modulate"),
        "to_basis": _turned(w, "basis"),
        "to_jump": _turned(w, "dead_zone"),
        "middle": features.COEFFICIENTS[:, 0],
        "half": features.COEFFICIENTS[:, 1],
    }
