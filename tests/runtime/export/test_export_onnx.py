"""The exported ONNX graphs say what NumPy says, also beyond the cache's length and for the paper's network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'retorque[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'retorque[onnx]'")

from retorque.adapt import make  # noqa: E402 (after the check above)
from retorque.adapt.tam.adapter import TamAdapter  # noqa: E402
from retorque.cli.main import main  # noqa: E402
from retorque.robots.robot import Robot  # noqa: E402
from retorque.runtime.export.export_onnx import ExportOnnxSettings, check_adaptor, check_encoder, run  # noqa: E402
from retorque.runtime.export.tam_onnx import adaptor_graph, encoder_graph  # noqa: E402
from retorque.work.errors import RetorqueError  # noqa: E402


def test_files_are_written_and_load(tmp_path: Path, capsys) -> None:
    assert main(["export", "onnx", "--robot", "z1", "--out", str(tmp_path)]) == 0
    assert "adaptor.onnx" in capsys.readouterr().out
    for name, inputs in (("adaptor", "latent"), ("encoder", "column")):
        session = onnxruntime.InferenceSession(tmp_path / f"{name}.onnx", providers=["CPUExecutionProvider"])
        assert inputs in [x.name for x in session.get_inputs()]
        assert session.get_modelmeta().custom_metadata_map["robot"] == "z1"


def test_an_altered_weight_is_noticed() -> None:
    tam = make("tam", Robot.load("panda"), 1)
    assert isinstance(tam, TamAdapter)
    adaptor, encoder = (graph(tam).model({}) for graph in (adaptor_graph, encoder_graph))
    assert check_adaptor(adaptor, tam, 0).difference < 1e-4 and check_encoder(encoder, tam, 0).difference < 1e-4
    for name in ("adaptor.combine.bias", "encoder.token.bias"):
        tam._tensors[name] = tam._tensors[name] + np.float32(0.05)
    tam.adaptor._w["combine.bias"] = tam._tensors["adaptor.combine.bias"]
    tam.adaptor._trials = 0
    assert check_adaptor(adaptor, tam, 0).difference > 1e-4
    assert check_encoder(encoder, tam, 0).difference > 1e-4


@pytest.mark.parametrize("adapter", ["recursive", "tam-short-window"])
def test_an_adapter_without_these_networks_is_refused(adapter: str, tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="no encoder and adaptor"):
        run(ExportOnnxSettings(robot="panda", adapter=adapter, out=tmp_path))
