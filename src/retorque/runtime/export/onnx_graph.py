"""A graph of ONNX operations, written node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from retorque.work.array import Array

OPSET, IR = 17, 9
"""Old enough for every runtime in use."""
TYPES = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE, "int64": TensorProto.INT64}


class OnnxGraph:
    """Nodes and constants; every method gives the name of what it made."""

    def __init__(self, name: str):
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def takes(self, name: str, kind: str, *shape: int) -> str:
        """An input."""
        self._inputs.append(helper.make_tensor_value_info(name, TYPES[kind], shape))
        return name

    def gives(self, name: str, value: str, *shape: int) -> None:
        """An output, single precision."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def constant(self, value: Array | Sequence[float] | float, kind: type = np.float32) -> str:
        """An array that is part of the graph."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One operation."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def dense(self, x: str, weights: Array) -> str:
        """A layer whose last row of weights is its bias."""
        return self.op("Add", self.op("MatMul", x, self.constant(weights[:-1])), self.constant(weights[-1]))

    def part(self, x: str, axis: int, start: int, stop: int) -> str:
        """Some of an axis."""
        ends = (self.constant([value], np.int64) for value in (start, stop, axis))
        return self.op("Slice", x, *ends)

    def shaped(self, x: str, *shape: int) -> str:
        """The same numbers in another shape."""
        return self.op("Reshape", x, self.constant(shape, np.int64))

    def single(self, x: str) -> str:
        """In single precision."""
        return self.op("Cast", x, to=TensorProto.FLOAT)

    def normed(self, x: str, epsilon: float) -> str:
        """Rows scaled to a mean square of one."""
        square = self.op("ReduceMean", self.op("Mul", x, x), axes=[-1], keepdims=1)
        return self.op("Div", x, self.op("Sqrt", self.op("Add", square, self.constant(epsilon))))

    def silu(self, x: str) -> str:
        """x times its logistic function."""
        return self.op("Mul", x, self.op("Sigmoid", x))

    def model(self, about: dict[str, str]) -> bytes:
        """The checked model, with what it is about."""
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, self._constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="retorque")
        made.ir_version = IR
        helper.set_model_props(made, about)
        onnx.checker.check_model(made)
        return made.SerializeToString()
