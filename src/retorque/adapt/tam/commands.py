"""The verb `train`, as the command line calls it."""

from __future__ import annotations

import importlib.util

from retorque.errors import RetorqueError

if importlib.util.find_spec("torch") is None:  # the extra is optional, so say how to get it
    raise RetorqueError("training needs PyTorch; install it with `pip install 'retorque[train]'`")

from retorque.adapt.tam import train as _train
from retorque.adapt.tam.train_settings import TrainSettings


def train(settings: TrainSettings) -> int:
    """Train as told; 0 when the weights are written."""
    _train.train(settings)
    return 0


__all__ = ["TrainSettings", "train"]
