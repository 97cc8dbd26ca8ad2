"""Perceptrons to train: linear layers with one kind of activation between them."""

from __future__ import annotations

from itertools import pairwise

from torch import nn


def perceptron(*widths: int, between: type[nn.Module] = nn.ELU) -> nn.Sequential:
    """A perceptron of these widths, with an activation between its layers and none after the last."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), between()]
    return nn.Sequential(*layers[:-1])
