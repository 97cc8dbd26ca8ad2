"""`retorque export`: what a robot's own program can run, without Python."""

from __future__ import annotations

from retorque.cli.verb import Verb, VerbGroup

EXPORT = VerbGroup(
    summary="an adapter for a robot's own program: C, or ONNX",
    commands={
        "c": Verb(
            summary="headers, sources, an example loop and a run that proves them: make -C DIR check",
            example="retorque export c --robot panda --adapter recursive --out panda-c",
            module="runtime.export.export_c",
            settings="ExportCSettings",
        ),
        "onnx": Verb(
            summary="TAM's adaptor and one column of its encoder, checked against NumPy",
            example="retorque export onnx --robot panda --adapter tam --out panda-onnx",
            module="runtime.export.export_onnx",
            settings="ExportOnnxSettings",
        ),
    },
)
