"""The pieces of proximal policy optimisation, by numbers that can be worked out by hand."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from retorque.learn.policy_gradient import (  # noqa: E402 (after the check for torch)
    clipped_gain,
    descend,
    generalised_advantages,
    standardised,
)


def test_without_a_trace_an_advantage_is_one_steps_surprise() -> None:
    reward, value, after = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.5], [0.5]]), torch.tensor([[0.5], [4.0]])
    none = torch.zeros(2, 1)
    found = generalised_advantages(reward, value, after, none, none, discount=0.5, trace=0.0)
    torch.testing.assert_close(found, torch.tensor([[0.75], [3.5]]))


def test_with_a_whole_trace_it_is_all_that_came_less_what_was_expected() -> None:
    reward, value = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[0.3], [0.2], [0.1]])
    after = torch.tensor([[0.2], [0.1], [0.0]])
    none = torch.zeros(3, 1)
    lost = torch.tensor([[0.0], [0.0], [1.0]])
    found = generalised_advantages(reward, value, after, lost, none, discount=1.0, trace=1.0)
    torch.testing.assert_close(found, torch.tensor([[6.7], [5.8], [3.9]]))


def test_nothing_leaks_from_one_episode_into_the_one_before() -> None:
    reward = torch.tensor([[0.0], [100.0]])
    zero = torch.zeros(2, 1)
    cut = torch.tensor([[1.0], [0.0]])
    found = generalised_advantages(reward, zero, zero, zero, cut, discount=0.9, trace=0.9)
    torch.testing.assert_close(found, reward)


def test_advantages_are_standardised_over_all_steps_and_trials() -> None:
    found = standardised(torch.arange(12.0).reshape(4, 3))
    assert found.shape == (12,)
    assert float(found.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(found.std()) == pytest.approx(1.0, rel=1e-4)
    torch.testing.assert_close(standardised(torch.full((3, 2), 7.0)), torch.zeros(6))  # nothing to choose between


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain"),
    [
        (1.0, 2.0, 2.0),
        (1.1, 2.0, 2.2),
        (1.5, 2.0, 2.4),  # no more is gained by going farther
        (0.5, 2.0, 1.0),  # what was good and is done less is a loss in full
        (1.5, -2.0, -3.0),  # so is what was bad and is done more
        (0.5, -2.0, -1.6),
    ],
)
def test_a_gain_counts_near_the_old_policy_only(ratio: float, advantage: float, gain: float) -> None:
    found = clipped_gain(torch.tensor([ratio]), torch.tensor([advantage]), 0.2)
    assert float(found) == pytest.approx(gain)


def test_beyond_the_clip_there_is_no_slope() -> None:
    ratio = torch.tensor([1.5, 1.1], requires_grad=True)
    clipped_gain(ratio, torch.tensor([1.0, 1.0]), 0.2).backward()
    torch.testing.assert_close(ratio.grad, torch.tensor([0.0, 0.5]))


def test_a_step_is_no_longer_than_told() -> None:
    weight = torch.nn.Parameter(torch.zeros(2))
    optimiser = torch.optim.SGD([weight], lr=1.0)
    for _ in range(2):  # what was there before does not add up
        before = weight.detach().clone()
        descend((weight * torch.tensor([300.0, 400.0])).sum(), [weight], optimiser, 0.5)
        torch.testing.assert_close(before - weight.detach(), torch.tensor([0.3, 0.4]), rtol=1e-4, atol=1e-6)
    before = weight.detach().clone()
    descend((weight * torch.tensor([0.03, 0.04])).sum(), [weight], optimiser, 0.5)
    torch.testing.assert_close(before - weight.detach(), torch.tensor([0.03, 0.04]), rtol=1e-4, atol=1e-6)
