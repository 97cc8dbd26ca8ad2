"""The student of the push in PyTorch, and what it loses by not choosing as its teacher does."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from retorque.learn.perceptron import perceptron
from retorque.tasks.push.box_clouds import VIEWS
from retorque.tasks.push.push_choice import SIDES
from retorque.tasks.push.student_network import CHOICES, CONTEXT, ENDS, POINT, VERTICES, StudentShape

OTHER_SIDES = 0.05
"""Weight of pushes at sides that the teacher would not choose."""
PUSHES, CORNERS = 6.0, 12.0
"""Weights of where the hand goes and of the box's corners, beside that of the choice."""


@dataclass(frozen=True)
class Looks:
    """What is seen and what the teacher says, (looks, trials, ...) each, in the network's units."""

    points: Tensor
    """(..., points, 3) as many of each view."""
    there: Tensor
    """(..., points)"""
    hand: Tensor
    """(..., 60)"""
    place: Tensor
    """(..., 3) where the cloud is, from which everything else counts."""
    goal: Tensor
    """(..., VERTICES)"""
    corners: Tensor
    """(..., VERTICES) of the box as it is."""
    chosen: Tensor
    """(..., CHOICES) the teacher's probabilities."""
    ends: Tensor
    """(..., SIDES, ENDS) the teacher's push of each side."""


class Student(nn.Module):
    """PointNet with a masked mean, a gated recurrent unit, the box's corners, and a push for each side.

    Args:
        shape: sizes.
    """

    def __init__(self, shape: StudentShape):
        super().__init__()
        self.shape = shape
        self.points = perceptron(POINT, 32, 64, shape.features)
        self.body = perceptron(2 * shape.features + CONTEXT, shape.width)
        self.memory = nn.GRUCell(shape.width, shape.memory)
        self.corners = perceptron(shape.memory + 2 * shape.features, shape.width, VERTICES)
        self.head = perceptron(shape.memory + 2 * VERTICES, shape.width, shape.width, CHOICES + SIDES * ENDS)

    def forward(self, looks: Looks) -> tuple[Tensor, Tensor, Tensor]:
        """Preferences (..., CHOICES), pushes (..., SIDES, ENDS) and corners (..., VERTICES) of every look."""
        of_each = looks.points.shape[-2] // VIEWS
        source = torch.eye(VIEWS).repeat_interleave(of_each, dim=0).expand(*looks.points.shape[:-1], VIEWS)
        x, y = looks.points[..., :1], looks.points[..., 1:2]
        told = torch.cat([looks.points, x * x, x * y, y * y, source], dim=-1)
        each, there = self.points(told), looks.there[..., None]
        count = looks.there.sum(-1, keepdim=True)
        mean = (each * there).sum(-2) / count.clamp(min=1.0)
        most = each.masked_fill(there < 0.5, -torch.inf).amax(-2)
        pooled = torch.cat([mean, torch.where(count > 0.0, most, 0.0)], dim=-1)
        felt = nn.functional.elu(self.body(torch.cat([pooled, looks.hand, looks.goal, looks.place], dim=-1)))
        memory, kept = torch.zeros(felt.shape[1], self.shape.memory), []
        for now in felt:
            memory = self.memory(now, memory)
            kept.append(memory)
        remembered = torch.stack(kept)
        corners = self.corners(torch.cat([remembered, pooled], dim=-1))
        out = self.head(torch.cat([remembered, corners, looks.goal], dim=-1))
        return out[..., :CHOICES], out[..., CHOICES:].unflatten(-1, (SIDES, ENDS)), corners


def student_loss(network: Student, looks: Looks) -> tuple[Tensor, dict[str, float]]:
    """What to make small, and figures: the corners' RMS error [m], and how often the choice is the teacher's."""
    preference, ends, corners = network(looks)
    choice = -(looks.chosen * torch.log_softmax(preference, dim=-1)).sum(-1).mean()
    weight = OTHER_SIDES + looks.chosen[..., :SIDES]
    apart = nn.functional.smooth_l1_loss(ends, looks.ends, reduction="none", beta=0.1).mean(-1)
    wrong = nn.functional.smooth_l1_loss(corners, looks.corners, beta=0.1)
    loss = choice + PUSHES * (weight * apart).sum(-1).mean() + CORNERS * wrong
    with torch.no_grad():
        off = float((corners - looks.corners).unflatten(-1, (8, 3)).square().sum(-1).mean()) ** 0.5
        same = float((preference.argmax(-1) == looks.chosen.argmax(-1)).float().mean())
    return loss, {"corner_error": 0.1 * off, "same_choice": same}
