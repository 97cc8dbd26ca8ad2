"""Damaged logs are refused or doubted for the right reason, and logs that are well are trusted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.bench.models.damaged_logs import Settings, judged, record, recording, run
from retorque.cli.main import main
from retorque.identify.hybrid.recordings import FAST_PERIOD, fourier_paths
from retorque.identify.methods.estimator import fit
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.regression import card_belief, compress, learn_noise
from retorque.identify.verdict.damage import Damage, RawLog, damages
from retorque.identify.verdict.mistakes import mistakes
from retorque.identify.verdict.reading import Reading
from retorque.identify.verdict.sample import KEPT, Sampled, shifted, thinned
from retorque.identify.verdict.verdict import judge
from retorque.logs.channels import Runs
from retorque.physics.friction import preset
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

Simulate = Callable[..., Any]
WELL = Damage(name="as it is", cause="", spoil=lambda log: log)


@pytest.fixture(scope="module")
def log(simulate: Simulate) -> RawLog:
    """A noisy log of a hidden Panda."""
    truth = simulate("panda", preset("presliding"), seconds=16.0, rate=200.0)
    rng = np.random.default_rng(0)
    motion = truth.motion
    return RawLog(
        time=motion.time,
        position=motion.q + 2e-5 * rng.standard_normal(motion.q.shape),
        velocity=motion.qd + 1e-3 * rng.standard_normal(motion.q.shape),
        torque=motion.torque + 0.02 * np.std(motion.torque, axis=0) * rng.standard_normal(motion.q.shape),
    )


def test_a_log_that_is_well_is_trusted(log: RawLog) -> None:
    verdict = judged(Robot.load("panda"), WELL, log)
    assert verdict.verdict == "trust" and not verdict.causes, verdict


def bare_z1() -> Robot:
    """A Z1 without rotors: its wrist weighs next to nothing."""
    robot = Robot.load("z1")
    links = [x if x.joint is None else replace(x, joint=replace(x.joint, armature=0.0)) for x in robot.links]
    return robot.with_links(tuple(links))


def noisy_wrist(robot: Robot) -> RawLog:
    """Sines of an arm and its card's own torques, with a noise that hides those of its wrist."""
    clock = np.arange(0.0, 8.0, 0.005)
    rng = np.random.default_rng(1000)
    q, qd, qdd = (np.zeros((len(clock), robot.n)) for _ in range(3))
    for rate in 2.0 * np.pi * np.array([0.3, 0.7, 1.1]):
        size, angle = rng.uniform(0.1, 0.25, robot.n), rate * clock[:, None] + rng.uniform(-np.pi, np.pi, robot.n)
        q, qd = q + size * np.sin(angle), qd + size * rate * np.cos(angle)
        qdd = qdd - size * rate**2 * np.sin(angle)
    q = q + robot.home
    torque = RigidBody(robot).inverse_dynamics(q, qd, qdd) + 0.05 * rng.standard_normal(q.shape)
    return RawLog(time=clock, position=q, velocity=qd, torque=torque)


def test_noise_is_not_mistaken_for_another_robot(tmp_path: Path) -> None:
    robot = bare_z1()
    card = robot.save(tmp_path / "bare_z1.toml")
    verdict = judged(robot, replace(WELL, robot=str(card)), noisy_wrist(robot))
    assert verdict.verdict == "trust" and not verdict.causes, verdict
    assert verdict.evidence["unexplained_held_back"][-1] > 0.9
    assert verdict.evidence["unexplained_beyond_noise"][-1] < 0.3
    assert "hardly above its noise" in " ".join(verdict.reasons)


def test_noise_in_place_of_a_torque_is_no_excuse() -> None:
    """A loose wire: the card foresees far more than the channel's noise."""
    log = noisy_wrist(Robot.load("z1"))
    torque = log.torque.copy()
    torque[:, 1] = 0.05 * np.random.default_rng(1001).standard_normal(len(torque))
    verdict = judged(Robot.load("z1"), WELL, replace(log, torque=torque))
    assert verdict.verdict != "trust", verdict


@pytest.mark.parametrize("name", ["iiwa14", "ur10e"])
def test_a_stand_in_follows_its_path_and_is_trusted(name: str) -> None:
    robot = Robot.load(name)
    log = record(robot, 1001, 6.0)
    path = fourier_paths(robot, 1, 1001)
    rate = np.full(1, 1.0 / FAST_PERIOD)
    wanted = path.at(log.time[:, None] / FAST_PERIOD, rate)[0][:, 0]
    assert np.max(np.abs(log.position - wanted)) < 0.5  # up to 2.5 rad with gains made for bare links
    assert judged(robot, WELL, log).verdict == "trust"


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_every_damage_is_caught_and_most_are_named(log: RawLog, part: int) -> None:
    tried = damages(7, ("iiwa14",))[part::3]
    found = {damage.name: (damage, judged(Robot.load("panda"), damage, log)) for damage in tried}
    missed = [name for name, (_, verdict) in found.items() if verdict.verdict == "trust"]
    assert not missed
    named = [damage.cause in verdict.causes for damage, verdict in found.values()]
    assert np.mean(named) >= 0.8, [name for name, (d, v) in found.items() if d.cause not in v.causes]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 6))])
def test_strangers_mistakes_are_caught_and_named(log: RawLog, part: int) -> None:
    robot = Robot.load("panda")
    for mistake in mistakes(robot)[part::6]:
        verdict = judged(robot, mistake, log)
        assert verdict.verdict != "trust" and mistake.cause in verdict.causes, (mistake.name, verdict)


def test_two_mistakes_are_both_named(simulate: Simulate) -> None:
    motion = simulate("z1", preset("presliding"), seconds=10.0).motion
    sign = np.array([1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    verdict = judge(replace(motion, torque=motion.torque * sign), Robot.load("z1"), preset("presliding"))
    said = " ".join(verdict.reasons)
    assert verdict.causes == ("sign",) and "joint2" in said and "joint3" in said and "two things at once" in said


def test_the_recorded_robots(shared: Path) -> None:
    settings = Settings(data=shared / "data")
    for name, source in (("ur10e", "ur-20_02_12-50sec_12harm"), ("panda", "recorded")):
        robot = Robot.load(name)
        log = recording(settings, robot, source)
        assert judged(robot, WELL, log).verdict == "trust"
        for damage in damages(robot.n):
            if damage.name in ("torque x 10", "joint 2 off by 6 degrees"):
                verdict = judged(robot, damage, log)
                assert verdict.verdict != "trust" and damage.cause in verdict.causes, (name, damage.name, verdict)


@pytest.mark.slow
def test_all_of_them(shared: Path) -> None:
    report = run(Settings(data=shared / "data"))
    damaged = [row for row in report.rows if row.metric == "refused or doubted"]
    assert all(row.mean == 1.0 for row in damaged)
    assert np.mean([row.extra["named"] for row in damaged]) >= 0.8
    assert not any(row.mean for row in report.rows if row.metric == "false alarm")


def test_exit_codes_and_files(log: RawLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = {damage.name: damage for damage in damages(7)}
    ends = {"as it is": 0, "joint 3 off by -6 degrees": 3, "torque of joint 2 reversed": 2, "clock in ms": 2}
    for name, code in ends.items():
        path = cases.get(name, WELL).spoil(log).save(tmp_path / "log.npz")
        result, folder = tmp_path / "r.json", tmp_path / name.replace(" ", "-")
        options = ["--robot", "panda", "--json", str(result), "--export", str(folder), "--report", str(folder)]
        found = main(["identify", str(path), *options])
        said = capsys.readouterr()
        content = json.loads(result.read_text())
        word = {0: "trust", 3: "doubt", 2: "refuse"}[found]
        assert found in ((code,) if code != 3 else (2, 3)), (name, said)
        assert content["verdict"] == word and f"verdict: {word}" in said.out
        assert all(isinstance(cause, str) for cause in content["causes"])
        assert (folder / "panda_identified.toml").exists() == (found != 2)
        if name != "clock in ms":  # nothing was identified there
            assert f">{word}" in (folder / "identification.html").read_text()


def test_a_dead_channel_has_no_say(simulate: Simulate) -> None:
    """The other joints' parameters are those found without the dead joint."""
    truth = simulate("panda", seconds=8.0)
    torque = truth.motion.torque.copy()
    torque[:, 0] = 3.0
    dead = replace(truth.motion, torque=torque)
    layout = Layout(truth.robot, truth.friction)
    factors = compress(dead, layout)
    assert factors.dead.tolist() == [True] + [False] * 6
    noise = learn_noise(factors, dead, card_belief(factors))
    assert noise.weight[0] < 1e-9 * np.min(noise.weight[1:])
    estimate = fit(dead, truth.robot, truth.friction, "sdp")
    assert np.all(estimate.score(truth.motion).relative[1:] < 0.01)


def test_friction_that_drives_is_seen(simulate: Simulate) -> None:
    truth = simulate("z1", seconds=6.0)
    reading = Reading(truth.robot, truth.friction, truth.motion[thinned(truth.motion)])
    sign = np.ones(truth.robot.n)
    sign[-1] = -1.0
    assert np.all(reading.fit().backwards == 0.0)
    assert reading.fit(reading.motion.torque * sign).backwards[-1] > 0.1
    assert np.all(reading.held_back() < 0.05)


def test_no_motion_is_no_model(simulate: Simulate) -> None:
    truth = simulate("z1", seconds=3.0)
    still = truth.motion[np.zeros(100, dtype=int)]
    verdict = judge(still, truth.robot, truth.friction)
    assert verdict.verdict == "refuse" and verdict.causes == ("no motion",) and verdict.code == 2


def test_what_is_kept_of_a_long_log_is_bounded(simulate: Simulate) -> None:
    motion = simulate("z1", seconds=30.0).motion

    class Long:
        def chunks(self) -> Any:
            for _ in range(40):
                yield from motion.chunks()

    sampled = Sampled(Long())
    assert sum(len(piece) for piece in sampled.chunks()) == 40 * len(motion)
    assert KEPT // 4 < len(sampled.motion()) <= KEPT


def test_torques_are_read_at_another_time(simulate: Simulate) -> None:
    motion = simulate("z1", seconds=3.0).motion
    at = np.arange(50, 250, 10)
    later, there = shifted(motion, at, 0.205)
    assert np.all(there[:-3])
    exact = 0.5 * (motion.torque[at + 20] + motion.torque[at + 21])
    assert np.allclose(later[there], exact[there])
    assert not np.any(shifted(motion, at, 5.0)[1])


def test_runs_over_blocks() -> None:
    time = np.arange(100) * 0.1
    values = np.stack([np.r_[np.arange(30), np.full(50, 7.0), np.arange(20)], np.arange(100.0)], axis=1)
    runs = Runs(2)
    for start in (0, 45, 60):
        stop = {0: 45, 45: 60, 60: 100}[start]
        runs.add(time[start:stop], values[start:stop])
    assert np.isclose(runs.longest[0], 4.9) and runs.longest[1] < 0.11
