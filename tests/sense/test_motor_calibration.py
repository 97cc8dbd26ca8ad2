"""Motor constants from logs: found within their own errors, refused where the log cannot tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.cli.main import main
from retorque.robots.motor import load_motor
from retorque.sense import motor_calibration as fits
from retorque.work.errors import RetorqueError

KT, KV, RW, ETA, COULOMB, BUS = 1.1, 0.61, 8.2, 0.72, 0.05, 12.0


def _current(load: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """What a motor with this gear draws against a load that it moves (equation 7 and Coulomb friction)."""
    driving = load * velocity > 0.0
    size = np.where(driving, (np.abs(load) + COULOMB) / (ETA * KT), ETA * (np.abs(load) - COULOMB) / KT)
    return np.sign(load) * size


def _pendulum(seed: int = 0, noise: float = 0.005) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 40.0, 0.02)
    position = 1.2 * np.sin(0.5 * time)
    velocity = 0.6 * np.cos(0.5 * time)
    load = fits.pendulum_load(position, 0.3, 0.2)
    heavy = np.abs(load) > 2.0 * COULOMB
    current = _current(load, velocity) + noise * rng.standard_normal(len(time))
    return {"position": position[heavy], "velocity": velocity[heavy], "current": current[heavy], "load": load[heavy]}


def test_a_known_payload_tells_torque_constant_efficiency_and_friction() -> None:
    log = _pendulum()
    fit = fits.drive(log["load"], log["current"], log["velocity"])
    for found, true in ((fit.torque_constant, KT), (fit.efficiency, ETA), (fit.coulomb, COULOMB)):
        assert found.value == pytest.approx(true, rel=0.02)
        assert abs(found.value - true) < 4.0 * found.deviation


def test_the_reported_error_is_the_spread_of_the_estimate() -> None:
    found = []
    for seed in range(40):
        log = _pendulum(seed)
        found.append(fits.drive(log["load"], log["current"], log["velocity"]))
    spread = np.std([fit.torque_constant.value for fit in found])
    assert np.mean([fit.torque_constant.deviation for fit in found]) == pytest.approx(spread, rel=0.5)


def test_a_free_sweep_and_the_winding() -> None:
    rng = np.random.default_rng(1)
    velocity = rng.uniform(-4.0, 4.0, 500)
    free = np.sign(velocity) * COULOMB / (ETA * KT)
    pwm = (velocity / KV + RW * free) / BUS + 1e-3 * rng.standard_normal(500)
    kv = fits.velocity_constant(pwm, np.full(500, BUS), velocity)
    assert kv.value == pytest.approx(KV, rel=0.01) and abs(kv.value - KV) < 4.0 * kv.deviation
    current = rng.uniform(-1.0, 1.0, 500)
    pwm = (velocity / KV + RW * current) / BUS + 1e-3 * rng.standard_normal(500)
    rw = fits.winding_resistance(pwm, np.full(500, BUS), velocity, current, KV)
    assert rw.value == pytest.approx(RW, rel=0.01) and abs(rw.value - RW) < 4.0 * rw.deviation


def test_logs_that_cannot_tell_are_refused() -> None:
    log = _pendulum()
    up = log["load"] * log["velocity"] > 0.0
    with pytest.raises(RetorqueError, match="both lifted and let down"):
        fits.drive(log["load"][up], log["current"][up], log["velocity"][up])
    still = np.ones(100)
    with pytest.raises(RetorqueError, match="vary it more"):
        fits.velocity_constant(still, still, still)


def test_the_command_writes_a_card_that_makes_the_motor_usable(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    log = _pendulum()
    columns = ("position", "velocity", "current")
    rows = [",".join(columns), *(",".join(f"{log[c][k]:.6f}" for c in columns) for k in range(len(log["position"])))]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    card = tmp_path / "mine.toml"
    options = ["--motor", "2XL430", "--payload", "0.3", "--arm", "0.2", "--output", str(card)]
    assert main(["calibrate-motor", str(tmp_path / "log.csv"), *options]) == 0
    assert "torque constant" in capsys.readouterr().out
    motor = load_motor(card)
    motor.require("torque_constant")
    assert motor.torque_constant == pytest.approx(KT, rel=0.02)
    assert "calibrated from log.csv" in dict(motor.sources)["torque_constant"]


@pytest.mark.parametrize("text", ("", "velocity\n", "velocity,pwm\n1,x\n", "speed\n1\n", "velocity\n" + "nan\n" * 30))
def test_broken_logs_end_in_one_sentence(tmp_path: Path, text: str, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "log.csv").write_text(text)
    assert main(["calibrate-motor", str(tmp_path / "log.csv"), "--motor", "XC430"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
