"""The supervisor: every fallback, every limit, and the code that says so."""

import numpy as np
import pytest

from retorque.adapt import make
from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target

ROBOT = Robot.load("panda")
TRIALS = 2


class Plus(Adapter):
    """Adds `amount` [N·m] to every joint; records what it is shown."""

    def __init__(self, amount=1.0, learn_every=0):
        super().__init__(ROBOT, TRIALS)
        self.amount = np.full((TRIALS, ROBOT.n), float(amount))
        self.learn_every = learn_every
        self.seen, self.resets, self.carries, self.fail = [], 0, 0, False

    def reset(self):
        self.resets += 1

    def carry(self):
        self.carries += 1

    def observe(self, state):
        self.seen.append(state)

    def learn(self):
        if self.fail:
            raise ValueError("broken")
        return Belief.of("Plus", 0.0)

    def correct(self, state, nominal_torque):
        return nominal_torque + self.amount


def settings(**changes):
    return SupervisorSettings(**{"enable_ramp": 0.0, "recovery": 0.0, "bridge": 0.002, "fade": 0.005, **changes})


class Rig:
    """Ticks a supervisor with a slowly moving robot's reports."""

    def __init__(self, adapter, **changes):
        self.supervisor = Supervisor(adapter, settings(**changes))
        self.tick = 0
        self.nominal = np.full((TRIALS, ROBOT.n), 0.5)
        self.sent = np.zeros((TRIALS, ROBOT.n))

    def report(self):
        shape = (TRIALS, ROBOT.n)
        moved = 1e-4 * self.tick
        return State(self.tick * 1e-3, ROBOT.home + np.full(shape, moved), np.full(shape, 0.1), self.sent.copy())

    def learn(self):
        belief = self.supervisor.learn()
        if belief is not None:
            self.supervisor.adopt(belief)

    def step(self, state=None, nominal=None):
        state = self.report() if state is None else state
        self.tick += 1
        self.supervisor.observe(state)
        self.sent = self.supervisor.correct(state, self.nominal if nominal is None else nominal)
        return self.sent


def has(rig, flag, trial=0):
    return bool(rig.supervisor.health[trial] & flag)


def test_clean_ticks_pass_through_and_carry_no_code():
    rig = Rig(Plus(1.0))
    for _ in range(5):
        np.testing.assert_allclose(rig.step(), rig.nominal + 1.0)
        assert np.all(rig.supervisor.health == Health.OK)
    assert sum(rig.supervisor.counts.values()) == 0


def test_enable_ramp_fades_in_and_again_after_a_reset():
    rig = Rig(Plus(1.0), enable_ramp=0.01)
    gains = [rig.step()[0, 0] - 0.5 for _ in range(12)]
    np.testing.assert_allclose(gains[:3], [0.1, 0.2, 0.3])
    assert gains[-1] == pytest.approx(1.0) and not has(rig, Health.RAMP)
    rig.supervisor.reset()
    assert rig.supervisor.adapter.resets == 1
    assert rig.step()[0, 0] - 0.5 == pytest.approx(0.1)
    assert has(rig, Health.RAMP)


def test_adapter_that_cannot_reset_is_coded():
    class Stuck(Plus):
        def reset(self):
            raise RuntimeError("broken")

    rig = Rig(Stuck(1.0))
    rig.supervisor.reset()
    rig.step()
    assert has(rig, Health.FAULT)


def test_carry_keeps_the_correction():
    rig = Rig(Plus(1.0), enable_ramp=0.01)
    for _ in range(12):
        rig.step()
    rig.supervisor.carry()
    assert rig.supervisor.adapter.carries == 1
    np.testing.assert_allclose(rig.step(), rig.nominal + 1.0)


def test_residual_limit():
    rig = Rig(Plus(5.0), residual_limit=(2.0,) * 7)
    np.testing.assert_allclose(rig.step(), rig.nominal + 2.0)
    assert has(rig, Health.RESIDUAL_LIMIT)


def test_rate_limit():
    adapter = Plus(0.0)
    rig = Rig(adapter, rate_limit=(100.0,) * 7)
    rig.step()
    adapter.amount[:] = 1.0
    sent = [rig.step()[1, 3] - 0.5 for _ in range(12)]
    np.testing.assert_allclose(sent[:3], [0.1, 0.2, 0.3])
    assert sent[-1] == pytest.approx(1.0) and not has(rig, Health.RATE_LIMIT)


def test_torque_limit():
    rig = Rig(Plus(5.0))
    sent = rig.step(nominal=np.full((TRIALS, ROBOT.n), 500.0))
    np.testing.assert_allclose(sent, np.broadcast_to(ROBOT.torque_limit, sent.shape))
    assert has(rig, Health.TORQUE_LIMIT)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_correction_that_is_not_finite_is_held_then_fades(value):
    adapter = Plus(1.0)
    rig = Rig(adapter)
    rig.step()
    adapter.amount[0, 2] = value
    assert_held_then_faded(rig, lambda: rig.step(), slice(None))
    assert has(rig, Health.BAD_CORRECTION) and not has(rig, Health.BAD_CORRECTION, 1)


def assert_held_then_faded(rig, step, joints):
    """Trial 0's correction of 1 N·m stays for 2 ms, then falls by 0.2 a tick to nothing; all else stays corrected."""
    sent = np.array([step() for _ in range(9)]) - 0.5
    faded = np.array([1, 1, 0.8, 0.6, 0.4, 0.2, 0, 0, 0])
    np.testing.assert_allclose(sent[:, 0, joints].T, np.broadcast_to(faded, sent[:, 0, joints].T.shape), atol=1e-9)
    np.testing.assert_allclose(sent[:, 1], 1.0)
    others = np.delete(sent[:, 0], joints, axis=1)
    np.testing.assert_allclose(others, 1.0)


def test_adapter_that_raises_or_returns_another_shape_becomes_the_nominal_torque():
    class Raises(Plus):
        def correct(self, state, nominal_torque):
            raise RuntimeError("broken")

    class Wrong(Plus):
        def correct(self, state, nominal_torque):
            return np.zeros(3)

    for adapter in (Raises(), Wrong()):
        rig = Rig(adapter)
        np.testing.assert_allclose(rig.step(), rig.nominal)
        assert has(rig, Health.FAULT)


def test_stale_estimate_fades_to_nominal_and_comes_back():
    adapter = Plus(1.0, learn_every=1)
    rig = Rig(adapter, stale_after=0.02, fade=0.01)
    adapter.fail = True
    sent = []
    for _ in range(60):
        sent.append(rig.step()[0, 0] - 0.5)
        rig.learn()
    assert sent[10] == pytest.approx(1.0) and 0.0 < sent[24] < 1.0 and sent[-1] == pytest.approx(0.0)
    assert has(rig, Health.STALE) and has(rig, Health.FAULT)
    adapter.fail = False
    rig.step()
    rig.learn()
    rig.step()
    assert not has(rig, Health.STALE) and not has(rig, Health.FAULT)


@pytest.mark.parametrize(
    ("field", "value", "flag"),
    [
        ("position", np.nan, Health.BAD_STATE),
        ("velocity", np.inf, Health.BAD_STATE),
        ("torque", np.nan, Health.BAD_STATE),
        ("torque", 11.0, Health.TORQUE_REPORT),
    ],
)
def test_unusable_number_of_one_joint_holds_its_correction_then_fades_it(field, value, flag):
    adapter = Plus(1.0)
    rig = Rig(adapter)
    for _ in range(12):
        rig.step()

    def step():
        state = rig.report()
        getattr(state, field)[0, 4] = value
        return rig.step(state)

    assert_held_then_faded(rig, step, [4])
    assert has(rig, flag) and rig.supervisor.health[1] == Health.OK
    shown = adapter.seen[-1]
    assert np.all(np.isfinite(shown.position[1]))
    if field == "torque":  # what was sent stands for it
        np.testing.assert_allclose(shown.torque[0], np.where(np.arange(7) == 4, 0.5, 1.5))
    else:
        assert np.all(np.isnan(shown.position[0]))


def test_torque_beyond_the_limit_is_replaced_and_the_correction_stays():
    adapter = Plus(1.0)
    rig = Rig(adapter)
    for _ in range(12):
        rig.step()
    state = rig.report()
    state.torque[0, 0] = 2.0 * ROBOT.torque_limit[0]
    np.testing.assert_allclose(rig.step(state), rig.nominal + 1.0)
    assert has(rig, Health.SATURATED)
    np.testing.assert_allclose(adapter.seen[-1].torque, 1.5)


def test_a_lone_bad_report_costs_nothing_and_a_fade_is_recovered_from():
    rig = Rig(Plus(1.0), recovery=0.01)
    rig.step()

    def bad():
        state = rig.report()
        state.position[0, 0] = np.nan
        return rig.step(state)[0, 0] - 0.5

    assert bad() == pytest.approx(1.0) and rig.step()[0, 0] - 0.5 == pytest.approx(1.0)
    assert [bad() for _ in range(9)][-1] == pytest.approx(0.0)
    sent = [rig.step() for _ in range(60)]
    trial = np.array(sent)[:, 0, 0] - 0.5
    assert trial[0] == pytest.approx(0.0)  # a fault is over when it has been away for a while
    rising = trial[(trial > 0.0) & (trial < 1.0)]
    np.testing.assert_allclose(rising, 0.1 * np.arange(1, 10))
    assert trial[-1] == pytest.approx(1.0) and rig.supervisor.health[0] == Health.OK
    np.testing.assert_allclose(np.array(sent)[:, 1], 1.5)


def test_a_rejected_tick_never_drops_the_correction_in_one_step():
    rig = Rig(Plus(30.0), bridge=0.0, fade=0.1)
    before = rig.step()
    for _ in range(100):
        state = rig.report()
        state.velocity[:] = np.nan
        after = rig.step(state)
        assert np.abs(after - before).max() <= 30.0 * 0.011
        before = after
    np.testing.assert_allclose(after, rig.nominal)


@pytest.mark.parametrize("method", ["observe", "adopt", "carry", "reset"])
def test_while_a_method_of_the_adapter_fails_the_nominal_torque_goes_out(method):
    adapter = Plus(1.0, learn_every=1)
    rig = Rig(adapter)
    rig.step()
    working = getattr(adapter, method)

    def broken(*_):
        raise RuntimeError("broken")

    def call():
        if method == "adopt":
            rig.learn()
        elif method != "observe":
            getattr(rig.supervisor, method)()

    setattr(adapter, method, broken)
    call()
    for _ in range(10):
        sent = rig.step()
    np.testing.assert_allclose(sent, rig.nominal)
    assert has(rig, Health.FAULT)
    setattr(adapter, method, working)
    call()
    for _ in range(3):
        sent = rig.step()
    np.testing.assert_allclose(sent, rig.nominal + 1.0)


@pytest.mark.parametrize("shape", [(3,), (TRIALS, 3), (5, 7), ()])
def test_a_report_or_a_nominal_torque_of_another_shape_is_no_data(shape):
    adapter = Plus(1.0)
    rig = Rig(adapter)
    rig.step()
    odd = np.zeros(shape)
    if shape:
        rig.step(State(rig.tick * 1e-3, odd, odd, odd))
        assert has(rig, Health.BAD_STATE)
    sent = rig.step(nominal=odd)
    assert sent.shape == (TRIALS, 7) and np.isfinite(sent).all() and has(rig, Health.BAD_NOMINAL)
    np.testing.assert_allclose(rig.step(), rig.nominal + 1.0)
    assert rig.supervisor.health.tolist() == [0, 0]


def test_one_trials_bad_tick_leaves_the_others_score():
    rig = Rig(Plus(1.0))
    for tick in range(100):
        state = rig.report()
        if tick % 10 == 5:
            state.position[0, 0] = np.nan
        rig.step(state)
    assert rig.supervisor.score.samples.tolist() == [0, 4]


def test_one_robot_without_a_trials_axis():
    one, two = Supervisor(make("recursive", ROBOT), settings()), Supervisor(make("recursive", ROBOT, 1), settings())
    target = Target(ROBOT, Parameters.sample(ROBOT, profile_of(ROBOT), 1, 3), threads=1)
    for tick in range(200):
        state = target.read()
        flat = State(state.time, state.position[0], state.velocity[0], state.torque[0])
        nominal = RigidBody(ROBOT).gravity(state.position) + np.sin(0.02 * tick)
        sent = []
        for supervisor, report, torque in ((one, flat, nominal[0]), (two, state, nominal)):
            supervisor.observe(report)
            belief = supervisor.learn() if tick % 10 == 0 else None
            if belief is not None:
                supervisor.adopt(belief)
            sent.append(supervisor.correct(report, torque))
        assert sent[0].shape == (7,) and one.health.shape == ()
        np.testing.assert_array_equal(sent[0], sent[1][0])
        target.write(Command(torque=sent[1]))


def test_nominal_torque_that_is_not_finite_is_held_then_gravity():
    rig = Rig(Plus(1.0), hold=0.003)
    rig.step()
    broken = rig.nominal.copy()
    broken[0, 1] = np.nan
    held = rig.step(nominal=broken)
    np.testing.assert_allclose(held[0], rig.nominal[0] + 1.0)
    np.testing.assert_allclose(held[1], rig.nominal[1] + 1.0)
    assert has(rig, Health.BAD_NOMINAL)
    for _ in range(9):
        last = rig.step(nominal=broken)
    q = rig.report().position[0] - 1e-4
    np.testing.assert_allclose(last[0], RigidBody(ROBOT).gravity(q), atol=1e-9)


def test_repeated_and_late_reports_are_no_samples():
    adapter = Plus(1.0)
    rig = Rig(adapter)
    first = rig.report()
    rig.step(first)
    rig.step()
    seen = len(adapter.seen)
    for state in (State(1e-3, first.position, first.velocity, first.torque), first):
        np.testing.assert_allclose(rig.step(state), rig.nominal + 1.0)
        assert has(rig, Health.BAD_CLOCK)
    state = rig.report()
    state.time = np.nan
    rig.step(state)
    assert has(rig, Health.BAD_CLOCK) and len(adapter.seen) == seen
    rig.step()
    assert has(rig, Health.GAP) and len(adapter.seen) == seen + 1


def test_a_robot_that_no_longer_reports_fades_to_nominal():
    rig = Rig(Plus(1.0), stale_after=0.02, fade=0.01)
    state = rig.report()
    for _ in range(60):
        sent = rig.step(state)
    np.testing.assert_allclose(sent, rig.nominal)
    assert has(rig, Health.STALE) and has(rig, Health.BAD_CLOCK)


def test_the_same_samples_are_not_learnt_from_twice():
    class Counts(Plus):
        learnt = 0

        def learn(self):
            self.learnt += 1

    rig = Rig(Counts(1.0, learn_every=1))
    state = rig.report()
    for _ in range(5):
        rig.step(state)
        rig.supervisor.learn()
    assert rig.supervisor.adapter.learnt == 1


def test_joint_that_stops_reporting_is_found():
    rig = Rig(Plus(1.0))
    frozen = rig.report()
    for _ in range(400):
        state = rig.report()
        state.position[0, 2], state.velocity[0, 2] = frozen.position[0, 2], frozen.velocity[0, 2]
        sent = rig.step(state)
    assert has(rig, Health.FROZEN) and not has(rig, Health.FROZEN, 1)
    np.testing.assert_allclose(np.delete(sent[0], 2), 1.5)
    np.testing.assert_allclose(sent[1], 1.5)
    velocity = np.where(np.arange(7) == 2, 0.0, 0.1)  # it has come to rest, and stays there while the others move on
    acceleration = RigidBody(ROBOT).forward_dynamics(frozen.position[0], velocity, sent[0] - 1.0)
    assert abs(acceleration[2]) < 0.05 < np.max(np.abs(acceleration))


def test_adapters_own_codes_are_passed_on_and_counted():
    adapter = Plus(1.0)
    rig = Rig(adapter)
    adapter.health[1] = int(Health.SURPRISED)
    rig.step()
    assert rig.supervisor.health.tolist() == [0, int(Health.SURPRISED)]
    assert rig.supervisor.counts[Health.SURPRISED] == 1


def test_shadow_mode_sends_the_nominal_torque_and_logs_and_scores_the_correction():
    """A robot with a bias of -1 N·m on every joint: a correction of +1 explains it, and is not applied."""
    parameters = Parameters.ideal(ROBOT, TRIALS)
    parameters.torque_bias[:] = -1.0
    target = Target(ROBOT, parameters, threads=1)
    supervisor = Supervisor(Plus(1.0), settings(shadow=True, log_ticks=50))
    body = RigidBody(ROBOT)
    for _ in range(400):
        state = target.read()
        nominal = body.bias(state.position, state.velocity) - 5.0 * state.velocity
        supervisor.observe(state)
        sent = supervisor.correct(state, nominal)
        np.testing.assert_array_equal(sent, nominal)
        target.write(Command(torque=sent))
    np.testing.assert_allclose(supervisor.score.without, 1.0, atol=0.05)
    np.testing.assert_allclose(supervisor.score.corrected, 0.0, atol=0.05)
    clock, correction, codes = supervisor.log()
    assert clock.shape == (50,) and np.all(np.diff(clock) > 0.0)
    np.testing.assert_allclose(correction, 1.0)
    assert np.all(codes == 0)
