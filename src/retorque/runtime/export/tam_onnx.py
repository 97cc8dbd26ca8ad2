"""TAM as two ONNX graphs: the torque adaptor of every tick, and one column of the history encoder with its cache."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.adapter import TamAdapter
from retorque.adapt.tam.adaptor_rows import RowLayout
from retorque.adapt.tam.context import PROBES
from retorque.adapt.tam.encoder import EPSILON
from retorque.adapt.tam.fast_adaptor import JUMP
from retorque.adapt.tam.features import patch_size
from retorque.runtime.compiled.tam_constants import tam_constants
from retorque.runtime.export.onnx_graph import OnnxGraph
from retorque.work.array import Array

FAR = -1e30
"""Score of a column that has not been."""


def _constants(tam: TamAdapter) -> dict[str, Array]:
    found = tam_constants(tam)["tam"]
    assert isinstance(found, dict)
    return {name: np.asarray(value) for name, value in found.items()}


def adaptor_graph(tam: TamAdapter) -> OnnxGraph:
    """The correction (n) [N·m] out of the last ticks, newest first, the nominal torque, what the ideal robot would do
    under it, the test payloads' torques there, and the latent: the arguments of `FastAdaptor.correction`."""
    p, n, w = tam.preset, tam.robot.n, _constants(tam)
    g = OnnxGraph("adaptor")
    q = g.takes("position", "double", n, p.window)
    qd, torque = (g.single(g.takes(name, "double", n, p.window)) for name in ("velocity", "torque"))
    nominal, ideal = (g.shaped(g.single(g.takes(name, "double", n)), n, 1) for name in ("nominal", "ideal"))
    probes = g.op("Transpose", g.single(g.takes("probes", "double", PROBES, n)), perm=[1, 0])
    latent = g.single(g.takes("latent", "double", n, p.latent))
    now = g.part(q, 1, 0, 1)
    moved = g.single(g.op("Sub", g.part(q, 1, 1, p.window), now))  # in double: little would be left of it
    now, newest = g.single(now), g.part(qd, 1, 0, 1)
    mean = g.op("ReduceMean", qd, axes=[1], keepdims=1)
    bends = g.op("Tanh", g.op("Mul", mean, g.constant(w["bends"])))
    rows = g.op(
        "Concat",
        g.constant(np.ones((n, 1))),
        g.op("Sin", now),
        g.op("Cos", now),
        moved,
        qd,
        g.op("Tanh", g.op("Mul", torque, g.constant(0.5 / w["load"][:, None]))),
        g.op("Tanh", g.op("Mul", newest, g.constant(w["newest_bends"]))),
        bends,
        axis=1,
    )
    spread, known, carried = (
        g.op("Mul", ideal, g.constant(w["armature_range"][:, None])),
        g.op("Mul", ideal, g.constant(w["armature_shift"][:, None])),
        g.op("Sub", nominal, g.op("Mul", ideal, g.constant(tam.robot.armature[:, None]))),
    )
    signed = g.op("Concat", bends, mean, spread, carried, probes, axis=1)
    basis = g.op("Concat", signed, g.op("Abs", signed), known, g.constant(np.ones((n, 1))), axis=1)
    unit = g.constant(w["unit"][:, None])
    smooth = g.op(
        "Add", _along(g, basis, _coefficients(g, tam, w, latent)), g.op("Mul", _network(g, tam, w, rows, latent), unit)
    )
    jump = g.op("Mul", g.op("Softplus", g.dense(latent, w["to_jump"])), unit)
    up, down, one_half = g.part(jump, 1, 0, 1), g.part(jump, 1, 1, 2), g.constant(0.5)
    middle, half = (g.op("Mul", g.op(kind, up, down), one_half) for kind in ("Sub", "Add"))
    whole = g.op("Add", g.op("Add", nominal, known), smooth)
    side = g.op("Tanh", g.op("Mul", whole, g.constant(0.5 / JUMP)))
    found = g.op("Add", g.op("Add", g.op("Mul", side, half), middle), smooth)
    most = _along(g, basis, g.constant(w["limits"]))
    kept = g.op("Max", g.op("Min", found, most), g.op("Neg", most))
    g.gives("correction", g.shaped(g.op("Add", kept, known), n), n)
    return g


def _along(g: OnnxGraph, basis: str, weights: str) -> str:
    """Sums of a basis (n, rows) with weights of the same shape, (n, 1)."""
    return g.op("ReduceSum", g.op("Mul", basis, weights), g.constant([1], np.int64), keepdims=1)


def _coefficients(g: OnnxGraph, tam: TamAdapter, w: dict[str, Array], latent: str) -> str:
    """What the latent makes of the basis, (n, rows) [N·m]: linear in fourteen bounded numbers."""
    middle, half = g.constant(w["middle"]), g.constant(w["half"])
    raw = g.op("Div", g.op("Sub", g.dense(latent, w["to_basis"]), middle), half)
    found = g.op("Add", middle, g.op("Mul", half, g.op("Tanh", raw)))
    layout = RowLayout(tam.preset.window)
    columns = np.eye(len(w["middle"]))
    each = [layout.coefficients(columns, np.full(len(columns), unit)) for unit in w["unit"]]  # (n, rows, 14)
    return g.op("Einsum", found, g.constant(np.array(each)), equation="nf,nrf->nr")


def _network(g: OnnxGraph, tam: TamAdapter, w: dict[str, Array], rows: str, latent: str) -> str:
    """The perceptron's number for each joint, (n, 1)."""
    p, h = tam.preset, tam.preset.hidden
    embedded = g.op("Relu", g.op("MatMul", rows, g.constant(w["embedding"])))
    x = g.dense(embedded, w["combine"])
    mean = g.op("Relu", g.op("ReduceMean", x, axes=[0], keepdims=1))
    x = g.op("Add", x, g.dense(mean, w["summary"]))
    modulation = g.dense(latent, w["modulate"])
    inner = x
    for layer in range(p.depth):
        gain = g.op("Add", g.part(modulation, 1, layer * h, (layer + 1) * h), g.constant(1.0))
        shift = g.part(modulation, 1, (p.depth + layer) * h, (p.depth + layer + 1) * h)
        inner = g.op("Relu", g.op("Add", g.op("Mul", g.normed(x, EPSILON), gain), shift))
        if layer < p.depth - 1:
            x = g.op("Add", x, g.dense(inner, w["stack"][layer]))
    head = w["head"][:, None]
    found = g.op("Add", g.op("MatMul", x, g.constant(head[:h])), g.op("MatMul", inner, g.constant(head[h + 1 : -1])))
    return g.op("Add", found, g.constant(head[-1]))


def encoder_graph(tam: TamAdapter) -> OnnxGraph:
    """One column: latents (n, latent) and the cache's next state, out of a patch (n, numbers), the cache of keys and
    values (layers, columns, n, heads, size) and the column's number, from 0 on."""
    p, n, w = tam.preset, tam.robot.n, _constants(tam)
    size = p.width // p.heads
    cache = (p.layers, p.columns, n, p.heads, size)
    g = OnnxGraph("encoder")
    patch = g.takes("patch", "float", n, patch_size(p))
    keys, values = g.takes("keys", "float", *cache), g.takes("values", "float", *cache)
    column = g.takes("column", "int64", 1)
    places = g.constant(np.arange(p.columns).reshape(-1, 1, 1, 1), np.int64)
    here = g.op("Equal", places, g.op("Mod", column, g.constant([p.columns], np.int64)))
    seen = g.op("LessOrEqual", g.constant(np.arange(p.columns), np.int64), column)
    hidden = g.op("Where", seen, g.constant(0.0), g.constant(FAR))  # (columns)
    angle = g.op("Mul", g.single(column), g.constant(w["frequency"]))
    turn = (g.op("Sin", angle), g.op("Cos", angle))
    x = g.dense(g.silu(g.dense(patch, w["patch"])), w["token"])
    x = g.op("Add", x, g.constant(w["base"]))
    all_keys, all_values = [], []
    for layer in range(p.layers):
        query, key, value = _read(g, tam, x, w["time_norm"][layer], w["time_read"][layer])
        old_keys, old_values = (g.shaped(g.part(old, 0, layer, layer + 1), *cache[1:]) for old in (keys, values))
        new_keys = g.op("Where", here, _rotated(g, key, turn, size), old_keys)
        new_values = g.op("Where", here, value, old_values)
        all_keys.append(g.shaped(new_keys, 1, *cache[1:]))
        all_values.append(g.shaped(new_values, 1, *cache[1:]))
        scaled = g.op("Mul", _rotated(g, query, turn, size), g.constant(size**-0.5))
        if p.factorised:
            score = g.op("Add", g.op("Einsum", scaled, new_keys, equation="nhs,cnhs->nhc"), hidden)
            found = g.op("Einsum", g.op("Softmax", score, axis=-1), new_values, equation="nhc,cnhs->nhs")
        else:
            score = g.op("Einsum", scaled, new_keys, equation="nhs,cmhs->nhcm")
            score = g.op("Add", score, g.shaped(hidden, p.columns, 1))
            flat = g.op("Softmax", g.shaped(score, n, p.heads, p.columns * n), axis=-1)
            weight = g.shaped(flat, n, p.heads, p.columns, n)
            found = g.op("Einsum", weight, new_values, equation="nhcm,cmhs->nhs")
        x = g.op("Add", x, g.op("MatMul", g.shaped(found, n, p.width), g.constant(w["time_write"][layer])))
        if p.factorised:
            query, key, value = _read(g, tam, x, w["joint_norm"][layer], w["joint_read"][layer])
            score = g.op("Einsum", g.op("Mul", query, g.constant(size**-0.5)), key, equation="nhs,mhs->hnm")
            found = g.op("Einsum", g.op("Softmax", score, axis=-1), value, equation="hnm,mhs->nhs")
            x = g.op("Add", x, g.op("MatMul", g.shaped(found, n, p.width), g.constant(w["joint_write"][layer])))
        inner = g.op("Mul", g.normed(x, EPSILON), g.constant(w["norm"][layer]))
        x = g.op("Add", x, g.dense(g.silu(g.dense(inner, w["up"][layer])), w["down"][layer]))
    last = g.op("Mul", g.normed(x, EPSILON), g.constant(w["last_norm"]))
    g.gives("latent", g.dense(last, w["to_latent"]), n, p.latent)
    g.gives("next_keys", g.op("Concat", *all_keys, axis=0), *cache)
    g.gives("next_values", g.op("Concat", *all_values, axis=0), *cache)
    return g


def _read(g: OnnxGraph, tam: TamAdapter, x: str, norm: Array, weights: Array) -> list[str]:
    """Query, key and value, (n, heads, size) each."""
    p, n = tam.preset, tam.robot.n
    parts = g.op("MatMul", g.op("Mul", g.normed(x, EPSILON), g.constant(norm)), g.constant(weights))
    return [
        g.shaped(g.part(parts, 1, k * p.width, (k + 1) * p.width), n, p.heads, p.width // p.heads) for k in range(3)
    ]


def _rotated(g: OnnxGraph, x: str, turn: tuple[str, str], size: int) -> str:
    """The halves of every head, turned by the column's angles."""
    sine, cosine = turn
    a, b = g.part(x, 2, 0, size // 2), g.part(x, 2, size // 2, size)
    first = g.op("Sub", g.op("Mul", a, cosine), g.op("Mul", b, sine))
    return g.op("Concat", first, g.op("Add", g.op("Mul", a, sine), g.op("Mul", b, cosine)), axis=2)
