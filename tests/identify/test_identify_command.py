"""The commands: result files, export that reloads to the same torques, a page that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.identify.commands import IdentifySettings, identify
from retorque.identify.log_options import parse_gains, parse_rows
from retorque.identify.methods.black_box import BlackBox
from retorque.identify.methods.estimator import fit
from retorque.identify.payload_command import PayloadSettings, payload
from retorque.identify.report.advice import advice, coverage
from retorque.identify.report.model_files import export
from retorque.identify.report.summary import PHYSICAL
from retorque.physics.friction import preset
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]


@pytest.fixture(scope="module")
def logs(simulate: Simulate, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("logs")
    paths = []
    for seed in range(2):
        truth = simulate("z1", seconds=8.0, rate=200.0, seed=seed)
        m = truth.motion
        noise = 0.05 * np.random.default_rng(seed).standard_normal(m.torque.shape)
        path = folder / f"log{seed}.npz"
        np.savez(path, time=m.time, q=m.q, qd=m.qd, torque=m.torque + noise)
        paths.append(path)
    return paths[0], paths[1]


def test_result_report_and_export(logs: tuple[Path, Path], tmp_path: Path) -> None:
    settings = IdentifySettings(
        logs=(logs[0],),
        robot="z1",
        validate=(logs[1],),
        friction="auto",
        json=tmp_path / "result.json",
        report=tmp_path / "report",
        export=tmp_path / "export",
    )
    assert len(list(identify(settings).write_files())) == 3
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["physically_consistent"] and min(content["pseudo_inertia_min_eigenvalue"].values()) > 0.0
    assert max(content["validation"]["relative_error"]) < 0.2 and len(content["train"]["rmse"]) == 6
    assert {"name", "value", "std", "unit"} <= set(content["parameters"][0])
    assert content["dropped"]["train"]["dropped"] == 0 and content["base_parameters"]
    assert set(content["friction"]["cross_validated_rmse"]) >= {"sign", "presliding"}
    page = (tmp_path / "report" / "identification.html").read_text()
    assert page.startswith("<!doctype html>") and page.count("data:image/png;base64,") == 4
    assert "http" not in page.replace("http-equiv", "") and "What to record next" in page
    robot = Robot.load("z1")
    rng = np.random.default_rng(0)
    q, qd, qdd = (rng.uniform(-1.0, 1.0, (20, 6)) for _ in range(3))
    inertial = np.array([item["value"] for item in content["parameters"][:60]]).reshape(6, 10)
    armature = np.array([item["value"] for item in content["parameters"][60:66]])
    wanted = RigidBody(robot, inertial, armature).inverse_dynamics(q, qd, qdd)
    for ending in ("toml", "urdf", "xml"):
        reloaded = Robot.load(tmp_path / "export" / f"z1_identified.{ending}")
        found = RigidBody(reloaded).inverse_dynamics(q, qd, qdd)
        assert np.allclose(found, wanted, rtol=1e-6, atol=1e-6), ending
    card = Robot.load(tmp_path / "export" / "z1_identified.toml")
    assert card.friction is not None and card.friction.deviation is not None and card.uncertainty is not None
    identified = Parameters.of_robot(card)
    assert list(identified.friction.names) == content["friction"]["terms"]
    coefficients = np.array([item["value"] for item in content["parameters"][66:]]).reshape(6, -1)
    assert np.allclose(identified.friction_coefficients, coefficients, atol=1e-6)
    assert not list((tmp_path / "export").glob("*.json"))


def test_impossible_links_are_not_exported_and_nothing_is_written(logs: tuple[Path, Path], tmp_path: Path) -> None:
    settings = IdentifySettings(
        logs=(logs[0],),
        robot="z1",
        rows="0:300",
        method="wls",
        json=tmp_path / "result.json",
        export=tmp_path / "export",
    )
    with pytest.raises(RetorqueError, match="--method sdp"):
        identify(settings)
    assert not list(tmp_path.iterdir())


def test_a_black_box_says_what_it_does_not_have(logs: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings = IdentifySettings(
        logs=(logs[0],),
        robot="z1",
        rows="0:900",
        validate=(logs[1],),
        method="delan",
        json=tmp_path / "result.json",
        report=tmp_path / "report",
    )
    out = identify(settings)
    assert all(isinstance(path, Path) for _, path in out.write_files())
    assert any("no physical parameters" in str(shown.what) for shown in out.shown)
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["method"] == "delan" and "no pseudo-inertia eigenvalues" in content["note"]
    assert all(content[key] is None for key in PHYSICAL) and "parameters" in PHYSICAL
    for part in ("train", "validation"):
        assert len(content[part]["rmse"]) == 6 and np.all(np.isfinite(content[part]["relative_error"]))
    assert np.mean(content["train"]["relative_error"]) < 0.9  # it learnt something
    assert content["details"]["training"]["seed"] == 0 and content["versions"]["retorque"]
    page = (tmp_path / "report" / "identification.html").read_text()
    assert page.count("data:image/png;base64,") == 3 and "no physical parameters" in page
    assert "every link could exist" not in page and "What to record next" in page


def test_a_black_box_is_not_exported(logs: tuple[Path, Path], simulate: Simulate, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings = IdentifySettings(logs=(logs[0],), robot="z1", method="delan", export=tmp_path / "export")
    with pytest.raises(RetorqueError, match="no masses or inertias"):
        identify(settings)
    truth = simulate("z1", seconds=1.0)
    model = BlackBox(robot=truth.robot, method="delan", samples=100, predictor=lambda motion: motion.torque)
    with pytest.raises(RetorqueError, match="no masses or inertias"):
        export(model, tmp_path / "export")
    assert not list(tmp_path.iterdir())
    assert np.all(model.score(truth.motion).rmse == 0.0)


def test_payload_command(simulate: Simulate, logs: tuple[Path, Path], tmp_path: Path) -> None:
    settings = PayloadSettings(
        empty=logs[0], loaded=logs[1], robot="z1", friction="coulomb-viscous", json=tmp_path / "payload.json"
    )
    assert len(list(payload(settings).write_files())) == 1
    content = json.loads((tmp_path / "payload.json").read_text())
    # nothing was carried
    assert abs(content["mass_kg"]) < 3.0 * content["mass_std_kg"] + 0.02
    assert len(content["centre_m"]) == len(content["centre_std_m"]) == 3 and len(content["drive_gains"]) == 6


def test_estimate_export_needs_possible_links(simulate: Simulate, tmp_path: Path) -> None:
    truth = simulate("z1", seconds=3.0)
    estimate = fit(truth.motion, truth.robot, preset("coulomb-viscous"), "sdp")
    paths = export(estimate, tmp_path, name="mine")
    assert Robot.load(paths["card"]).name == "mine"
    assert np.allclose(Robot.load(paths["mjcf"]).armature, estimate.armature)


def test_rows_and_gains_are_read_or_refused() -> None:
    assert parse_rows("355:5090") == slice(355, 5090) and parse_rows(":") == slice(None)
    assert parse_rows("7:") == slice(7, None)
    for bad in ("5", "a:b", "9:3", "-4:5"):
        with pytest.raises(RetorqueError):
            parse_rows(bad)
    assert parse_gains(()) is None
    assert np.allclose(parse_gains(("1,2", "3")), [1.0, 2.0, 3.0])
    with pytest.raises(RetorqueError, match="numbers"):
        parse_gains(("x",))


def test_what_cannot_work_is_said_before_the_long_work(logs: tuple[Path, Path], tmp_path: Path) -> None:
    def refuse(pattern: str, **options: Any) -> None:
        with pytest.raises(RetorqueError, match=pattern):
            identify(IdentifySettings(logs=(logs[0],), robot="z1", **options))

    (tmp_path / "file").write_text("")
    refuse("is a file; name a folder", report=tmp_path / "file")
    refuse("cannot write into", report=tmp_path / "file" / "below")
    refuse("ends before row 9000", rows="9000:9500")
    refuse("too few to learn from", decimate=100_000)
    refuse("needs 6 drive gains.*got 1, 2", drive_gains=("1", "2"))
    refuse("there is no log", validate=(tmp_path / "nowhere.csv",))
    mapping = tmp_path / "map.toml"
    mapping.write_text('degrees = "no"')
    refuse("true or false", columns=mapping)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file", mapping]


def test_advice_names_what_is_not_explained(simulate: Simulate) -> None:
    truth = simulate("z1", seconds=4.0)
    estimate = fit(truth.motion, truth.robot, truth.friction, "sdp")
    seen = coverage(truth.motion, truth.robot)
    good, bad = np.full(6, 0.01), np.array([0.9, 0.01, 0.01, 0.01, 0.01, 0.01])
    assert not any("explained" in text or "validation error" in text for text in advice(estimate, seen, good, good))
    (told,) = [text for text in advice(estimate, seen, bad) if "not explained" in text]
    assert "joint1" in told and "joint2" not in told
    (told,) = [text for text in advice(estimate, seen, good, bad) if "validation error" in text]
    assert "joint1" in told and "joint2" not in told
