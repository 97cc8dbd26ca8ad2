"""What every adapter on board keeps to: trials of their own, a reset that forgets, seeds that repeat, its rates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import ADAPTERS, adapter_class, make, settings_of
from retorque.loop.adapter import Adapter
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

Answers = Callable[..., np.ndarray]
TRIALS, TICKS = 3, 130
SETTINGS = {"particle": {"particles": 32}, "particle-sharp": {"particles": 32}}
QUICK = ("direct", "oracle", "identified", "particle", "particle-sharp", "observer", "adaptive", "integral")
LEARNT = ("recursive", "recursive-contact", "default", "tam", "tam-recursive")
Z1 = Robot.load("z1")
TRUTH = Parameters.sample(Z1, profile_of(Z1), TRIALS, 5)


def made(name: str, trials: int = TRIALS, **given) -> Adapter:
    robot = TRUTH[0].on_card(Z1) if name == "identified" else Z1
    common = {"seed": 1, "truth": lambda: TRUTH[:trials], "settings": SETTINGS.get(name)}
    return make(name, robot, trials, **{**common, **given})


@pytest.mark.parametrize("name", [name for name in (*QUICK, *LEARNT) if not name.startswith("particle")])
def test_what_happens_to_one_trial_never_touches_another(name: str, answers: Answers) -> None:
    """Another motion, then reports that are not finite, in the middle trial: the others are the same to the bit.

    Particle filters draw all trials' numbers from one generator, so theirs are the same in distribution only.
    """
    plain = answers(made(name), TRIALS, TICKS)

    def spoil(tick: int, state: State, nominal: np.ndarray) -> None:
        state.position[1] += 0.2
        nominal[1] = -nominal[1]
        if 60 <= tick < 80:
            state.velocity[1, tick % 6] = np.nan
        if tick >= 100:
            state.position[1] = np.inf

    spoilt = answers(made(name), TRIALS, TICKS, spoil=spoil)
    np.testing.assert_array_equal(spoilt[:, [0, 2]], plain[:, [0, 2]])
    assert np.any(spoilt[:60, 1] != plain[:60, 1]) and np.all(np.isfinite(plain))


@pytest.mark.parametrize("name", (*QUICK, *LEARNT))
def test_an_adapter_never_draws_the_sensors_noise_again(name: str) -> None:
    """Whatever the adapter draws is not the sequence that sensors of the same seed draw, before and after a reset."""
    sensors = np.random.default_rng(1).bit_generator.state["state"]
    adapter = made(name, seed=1)
    for _ in range(2):
        drawing = [part for part in vars(adapter).values() if isinstance(part, np.random.Generator)]
        assert bool(drawing) == name.startswith("particle")
        # A generator of the same sequence has the same increment, however far it has gone.
        assert all(part.bit_generator.state["state"]["inc"] != sensors["inc"] for part in drawing)
        adapter.reset()


@pytest.mark.parametrize("name", (*QUICK, *LEARNT))
def test_a_reset_adapter_is_a_new_one_and_a_seed_repeats(name: str, answers: Answers) -> None:
    fresh = answers(made(name), TRIALS, 100, seed=4)
    used = made(name)
    answers(used, TRIALS, 100, seed=3)
    used.reset()
    np.testing.assert_array_equal(answers(used, TRIALS, 100, seed=4), fresh)


@pytest.mark.parametrize("name", (*QUICK, *LEARNT))
def test_what_is_given_is_not_changed(name: str) -> None:
    adapter = made(name)
    rng = np.random.default_rng(0)
    arrays = [Z1.home + 0.1 * rng.standard_normal((TRIALS, 6)), *0.1 * rng.standard_normal((3, TRIALS, 6))]
    kept = [array.copy() for array in arrays]
    for tick in range(20):
        state = State(1e-3 * tick, *arrays[:3])
        adapter.observe(state)
        adapter.correct(state, arrays[3])
    for array, before in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("name", [name for name in ADAPTERS if name not in ("oracle", "identified")])
def test_rates_beyond_its_own_are_refused_with_them(name: str) -> None:
    short, long = adapter_class(name).periods
    assert 0.0 < short <= long
    for timestep in (0.5 * short, 2.0 * long):
        with pytest.raises(RetorqueError, match=rf"Hz, not at {1.0 / timestep:.0f} Hz"):
            made(name, 1, timestep=timestep)


@pytest.mark.parametrize("name", ("observer", "adaptive", "integral", "recursive"))
def test_saved_in_the_middle_it_goes_on_to_the_bit(name: str, answers: Answers, tmp_path: Path) -> None:
    whole = made(name)
    answers(whole, TRIALS, 70)
    whole.save(tmp_path / "memory")
    other = made(name)
    other.load(tmp_path / "memory", mid_run=True)
    following = answers(whole, TRIALS, 50, first=70)
    np.testing.assert_array_equal(answers(other, TRIALS, 50, first=70), following)


@pytest.mark.parametrize("name", ("observer", "integral", "recursive", "particle"))
def test_a_memory_of_another_batch_rate_or_robot_is_refused(name: str, tmp_path: Path) -> None:
    made(name).save(tmp_path / "memory")
    for given, word in (({"trials": 2}, "trials"), ({"timestep": 2e-3}, "timestep")):
        with pytest.raises(RetorqueError, match=f"was learnt with {word}"):
            made(name, **given).load(tmp_path / "memory")
    with pytest.raises(RetorqueError, match="was learnt with robot"):
        make(name, Robot.load("piper"), TRIALS, settings=SETTINGS.get(name)).load(tmp_path / "memory")


def test_settings_are_read_from_text_by_their_types() -> None:
    found = settings_of("particle", {"particles": "64", "temperature": "0.5", "relative": "true"})
    assert found == adapter_class("particle").settings_type(particles=64, temperature=0.5, relative=True)
    for values, says in (
        ({"particels": "3"}, "did you mean 'particles'"),
        ({"particles": "3.5"}, "is a int, not '3.5'"),
        ({"relative": "yes"}, "is a bool, not 'yes'"),
    ):
        with pytest.raises(RetorqueError, match=says):
            settings_of("particle", values)
    with pytest.raises(RetorqueError, match="has no settings"):
        settings_of("direct", {"a": "1"})


@pytest.mark.parametrize("name", ("oracle", "identified"))
def test_the_true_parameters_inverted_drive_the_target_as_the_ideal_robot_goes(name: str, tmp_path: Path) -> None:
    """The command, put through the hidden drive and dynamics for one period, gives the ideal acceleration."""
    from retorque.physics.rigid_body import RigidBody
    from retorque.robots.command import Command
    from retorque.simulate.target import Target

    truth = TRUTH[:1]
    truth[0].on_card(Z1).save(tmp_path / "card.toml")
    given = {"truth": lambda: truth} if name == "oracle" else {"settings": {"card": str(tmp_path / "card.toml")}}
    adapter = make(name, Z1, 1, **given)
    rng = np.random.default_rng(2)
    target = Target(Z1, truth, threads=1)
    for _ in range(6):
        q, qd = Z1.home + 0.3 * rng.standard_normal((1, 6)), rng.uniform(-1.0, 1.0, (1, 6))
        nominal = RigidBody(Z1).inverse_dynamics(q, qd, 3.0 * rng.standard_normal((1, 6)))
        state = State(0.0, q, qd, nominal)
        target.reset(q, qd)
        target.write(Command(torque=adapter.correct(state, nominal)))
        wanted = qd + 1e-3 * RigidBody(Z1).forward_dynamics(q, qd, nominal)
        np.testing.assert_allclose(target.velocity, wanted, atol=1e-6)
