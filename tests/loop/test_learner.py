"""Who calls `learn`, and when: within the tick at its period, or in a thread that the tick never waits for."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from waiting import within

from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.learner import InlineLearner, ThreadLearner
from retorque.loop.single import Single
from retorque.loop.supervisor import Supervisor
from retorque.robots.robot import Robot
from retorque.robots.state import State

ROBOT = Robot.load("z1")


class Counting(Adapter):
    """Hands out beliefs that hold how often it learnt."""

    remembered = ("learnt",)

    def __init__(self, learn_every: int = 5):
        super().__init__(ROBOT, 1)
        self.learn_every = learn_every
        self.learnt, self.adopted, self.threads = 0, 0, set()
        self.may_learn = threading.Event()
        self.may_learn.set()

    def learn(self) -> Belief | None:
        self.threads.add(threading.get_ident())
        assert self.may_learn.wait(30.0)
        self.learnt += 1
        return None if self.learnt % 2 == 0 else Belief.of("Counting", 0.0, learnt=np.array([self.learnt]))

    def adopt(self, belief: Belief) -> None:
        self.adopted = int(belief.arrays["learnt"][0])

    def correct(self, state: State, nominal_torque: np.ndarray) -> np.ndarray:
        return nominal_torque


def test_inline_learning_is_every_so_many_ticks_from_the_first_on() -> None:
    adapter = Counting(5)
    learner = InlineLearner(adapter)
    at = []
    for tick in range(21):
        before = adapter.learnt
        learner.turn()
        if adapter.learnt > before:
            at.append(tick)
    assert at == [0, 5, 10, 15, 20]
    assert adapter.adopted == 5  # the even ones returned nothing


def test_an_adapter_that_never_learns_is_never_asked() -> None:
    adapter = Counting(0)
    learner = InlineLearner(adapter)
    for _ in range(10):
        learner.turn()
    assert adapter.learnt == 0


def test_the_count_of_ticks_is_the_adapters_own() -> None:
    """Another learner goes on where the last one was, also around a supervisor and a single robot."""
    adapter = Counting(5)
    for outer in (adapter, Single(adapter), Supervisor(adapter), Supervisor(Single(adapter))):
        learner = InlineLearner(outer)
        for _ in range(3):
            learner.turn()
    assert adapter._turns == 12
    assert adapter.due() is False and adapter._turns == 13


def test_the_count_is_saved(tmp_path) -> None:
    adapter = Counting(5)
    for _ in range(7):
        adapter.due()
    adapter.save(tmp_path / "memory.safetensors")
    other = Counting(5)
    other.load(tmp_path / "memory.safetensors", mid_run=True)
    assert [other.due() for _ in range(4)] == [False, False, False, True]


def test_a_thread_learns_beside_the_tick_and_is_gone_at_the_end() -> None:
    adapter = Counting(1)

    def turned() -> bool:
        learner.turn()
        return adapter.learnt >= 2

    with ThreadLearner(adapter) as learner:
        adapter.may_learn.clear()
        for _ in range(50):
            learner.turn()
        assert within(30.0, lambda: len(adapter.threads) == 1)
        for _ in range(50):
            learner.turn()
        assert adapter.learnt == 0  # the ticks did not wait for what is being learnt
        adapter.may_learn.set()
        assert within(30.0, turned)
    assert adapter.learnt >= 2 and adapter.adopted >= 1
    assert threading.get_ident() not in adapter.threads and len(adapter.threads) == 1
    done = adapter.learnt
    time.sleep(0.05)
    assert adapter.learnt == done
    assert not any(thread.name == "learn" and thread.is_alive() for thread in threading.enumerate())


def test_the_thread_ends_although_the_loop_raised() -> None:
    adapter = Counting(1)
    with pytest.raises(RuntimeError, match="robot"), ThreadLearner(adapter) as learner:
        learner.turn()
        raise RuntimeError("the robot is gone")
    assert not any(thread.name == "learn" and thread.is_alive() for thread in threading.enumerate())
