"""Faulty reports under the supervisor: found, coded, bridged or faded joint by joint, and recovered from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.loop.adapter import Adapter
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.report_faults import FAULTS, FaultyReports
from retorque.simulate.sensors import Sensors, SensorSettings

ROBOT = Robot.load("panda")
N, DT = ROBOT.n, 1e-3


class Puppet:
    """Robots that move along sines whatever they are told, and report with noise and delays."""

    timestep, takes = DT, "torque"

    def __init__(self, trials: int, seed: int, noise: bool = True, speed: float = 1.0):
        rng = np.random.default_rng(seed)
        self.amplitude = rng.uniform(0.2, 0.4, (trials, N))
        self.rate, self.phase = speed * rng.uniform(1.5, 3.0, (trials, N)), rng.uniform(0.0, 6.0, (trials, N))
        sensors = SensorSettings.perfect(trials)
        if noise:
            assert ROBOT.profile is not None
            sensors = SensorSettings.sample(ROBOT.profile, trials, seed)
        self.sensors = Sensors(sensors, N, seed)
        self.tick, self.sent = 0, np.zeros((trials, N))
        self.position = self.velocity = self.sent

    def read(self) -> State:
        angle = self.rate * self.tick * DT + self.phase
        self.position = ROBOT.home + self.amplitude * np.sin(angle)
        self.velocity = self.amplitude * self.rate * np.cos(angle)
        return self.sensors.read(self.tick * DT, self.position, self.velocity, self.sent)

    def write(self, command: Command) -> None:
        assert command.torque is not None
        self.sent = command.torque
        self.tick += 1

    def nominal(self) -> np.ndarray:
        """A torque that swings as a controller's would (trials, n)."""
        return 0.2 * ROBOT.torque_limit * np.sin(self.rate * self.tick * DT + 1.0)


class Steady(Adapter):
    """Adds 1 N·m to every joint and remembers the last report that it saw."""

    def __init__(self, trials: int):
        super().__init__(ROBOT, trials)
        self.seen: State | None = None

    def observe(self, state: State) -> None:
        self.seen = state

    def correct(self, state: State, nominal_torque: np.ndarray) -> np.ndarray:
        return nominal_torque + 1.0


def run(fault: str, duration: float, *, stop: float = np.inf, trials: int = 2, noise: bool = True, joint: int = 3):
    """Ticks of a supervised robot whose reports go wrong after 0.5 s: the supervisor, gains and codes of every tick.

    Gains are those of correction and nominal torque, (ticks, 2, trials, n).
    """
    puppet = Puppet(trials, 7, noise)
    plant = FaultyReports(puppet, fault, start=0.5, stop=stop, joint=joint) if fault else puppet
    supervisor = Supervisor(Steady(trials), SupervisorSettings(enable_ramp=0.0))
    gains, codes = [], []
    for _ in range(round(duration / DT)):
        state = plant.read()
        supervisor.observe(state)
        sent = supervisor.correct(state, puppet.nominal())
        assert np.isfinite(sent).all() and np.all(np.abs(sent) <= ROBOT.torque_limit)
        plant.write(Command(torque=sent))
        gains.append(np.stack([supervisor.gain, supervisor.nominal_gain]))
        codes.append(np.array(supervisor.health))
    return supervisor, np.array(gains), np.array(codes)


ALL_JOINTS = {
    "torque zero": Health.TORQUE_REPORT,
    "torque flipped": Health.TORQUE_REPORT,
    "torque scaled": Health.TORQUE_REPORT,
    "torque stuck": Health.TORQUE_REPORT,
    "velocity zero": Health.VELOCITY_REPORT,
    "velocity flipped": Health.VELOCITY_REPORT,
    "velocity scaled": Health.VELOCITY_REPORT,
    "velocity stuck": Health.VELOCITY_REPORT,
}
ONE_JOINT = {
    "torque zero, one joint": Health.TORQUE_REPORT,
    "velocity zero, one joint": Health.VELOCITY_REPORT,
    "velocity flipped, one joint": Health.VELOCITY_REPORT,
    "velocity scaled, one joint": Health.VELOCITY_REPORT,
    "slipped encoder": Health.SLIPPED,
    "missing joint": Health.BAD_STATE,
}
DEAD = ("frozen joint", "stuck position", "dead encoder")
"""Nobody knows where the joint is: any controller's torque is an answer to nothing."""
HARMLESS = ("5 % missing", "5 % repeated", "clock set back", "clock jitters")


def test_every_fault_is_tried() -> None:
    assert set(FAULTS) == {*ALL_JOINTS, *ONE_JOINT, *DEAD, *HARMLESS}


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_no_alarm_on_clean_reports(noise: bool, speed: float) -> None:
    puppet = Puppet(8, 3, noise, speed)
    supervisor = Supervisor(Steady(8), SupervisorSettings(enable_ramp=0.0))
    for _ in range(1500):
        state = puppet.read()
        supervisor.observe(state)
        puppet.write(Command(torque=supervisor.correct(state, puppet.nominal())))
    assert not any(supervisor.counts.values()), supervisor.counts


@pytest.mark.parametrize("fault", ALL_JOINTS)
def test_a_fault_of_all_joints_fades_them_with_its_code(fault: str) -> None:
    _, both, codes = run(fault, 1.6)
    gains = both.prod(axis=1)  # where velocities point the wrong way, it is the nominal torque that goes
    assert np.all(codes[:490] == 0)
    assert np.any(codes[500:] & ALL_JOINTS[fault], axis=0).all()
    # A joint that happens to be slow, or to carry no torque, shows nothing wrong: most must have faded.
    assert gains[-1].mean() < 0.35
    assert gains[500:].min(axis=0).mean() < 0.1


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("fault", ONE_JOINT)
def test_a_fault_of_one_joint_fades_that_joint_only(fault: str, noise: bool) -> None:
    _, gains, codes = run(fault, 1.6, noise=noise)
    assert np.all(codes[:490] == 0)
    assert np.any(codes[500:] & ONE_JOINT[fault], axis=0).all()
    whole = gains if "flipped" in fault else gains[:, :1]  # ... of one joint, too
    assert whole.prod(axis=1)[500:, :, 3].min(axis=0).max() == 0.0
    if whole is not gains:
        np.testing.assert_array_equal(gains[:, 1], 1.0)
    np.testing.assert_array_equal(np.delete(gains, 3, axis=-1), 1.0)


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("fault", DEAD)
def test_a_joint_that_nobody_knows_the_place_of_is_braked_and_stays_corrected(fault: str, noise: bool) -> None:
    _, gains, codes = run(fault, 1.6, noise=noise)
    assert np.all(codes[:490] == 0)
    assert np.any(codes[500:] & Health.FROZEN, axis=0).all() and np.any(codes[500:] & Health.BAD_NOMINAL, axis=0).all()
    assert gains[500:, 1, :, 3].min(axis=0).max() == 0.0
    assert np.all(gains[500:, 0, :, 3] > 0.5)
    np.testing.assert_array_equal(np.delete(gains, 3, axis=-1), 1.0)


@pytest.mark.parametrize("fault", [*ALL_JOINTS, *ONE_JOINT, *DEAD])
def test_all_is_well_again_when_a_fault_ends(fault: str) -> None:
    _, gains, codes = run(fault, 3.0, stop=1.0, noise=False)
    np.testing.assert_array_equal(gains[-1], 1.0)
    assert np.all(codes[-200:] == 0)


@pytest.mark.parametrize("fault", HARMLESS)
def test_lone_bad_reports_and_clocks_cost_nothing(fault: str) -> None:
    supervisor, gains, _ = run(fault, 1.5)
    np.testing.assert_array_equal(gains, 1.0)
    np.testing.assert_array_equal(supervisor.correction, 1.0)


def test_velocities_that_are_wrong_as_a_whole_switch_the_controller_off_before_the_robot_runs_away() -> None:
    _, whole, _ = run("velocity flipped", 0.53, trials=8)
    assert np.all(whole[:499] == 1.0)
    assert np.mean(np.all(whole[515, 1] == 0.0, axis=-1)) > 0.7  # who turns round just then shows nothing
    _, one, _ = run("velocity flipped, one joint", 0.515, trials=8)
    assert np.all(one == 1.0)  # what a single joint's are is bridged first


def test_a_single_report_whose_velocities_are_wrong_as_a_whole_switches_nothing_off() -> None:
    puppet = Puppet(4, 5)
    supervisor = Supervisor(Steady(4), SupervisorSettings(enable_ramp=0.0))
    for tick in range(600):
        state = puppet.read()
        if tick == 400:
            state = replace(state, velocity=-2.0 * state.velocity)
        supervisor.observe(state)
        puppet.write(Command(torque=supervisor.correct(state, puppet.nominal())))
        assert np.all(supervisor.gain > 0.9)  # bridged or nearly so; switching off takes a fifth a tick


def test_the_adapter_sees_a_clock_that_neither_jumps_nor_jitters() -> None:
    for fault in ("clock set back", "clock jitters"):
        puppet = Puppet(1, 0)
        plant = FaultyReports(puppet, fault, start=0.1)
        adapter = Steady(1)
        supervisor = Supervisor(adapter)
        stamps = []
        for _ in range(300):
            state = plant.read()
            supervisor.observe(state)
            plant.write(Command(torque=supervisor.correct(state, puppet.nominal())))
            assert adapter.seen is not None
            stamps.append(adapter.seen.time)
        steps = np.round(np.diff(stamps) / DT, 6)
        assert np.all(steps >= 0.0) and steps.max() <= 4.0
        assert np.mean(steps == 1.0) > 0.95


def test_what_another_number_can_stand_for_is_rebuilt() -> None:
    """Torques from what was sent, velocities from positions, slips taken off."""
    for fault, name, room in (
        ("torque zero", "torque", 3.5),
        ("velocity zero, one joint", "velocity", 0.1),
        ("slipped encoder", "position", 0.02),
    ):
        puppet = Puppet(1, 5, noise=False)
        plant = FaultyReports(puppet, fault, start=0.5, joint=3)
        adapter = Steady(1)
        supervisor = Supervisor(adapter, SupervisorSettings(enable_ramp=0.0))
        errors = []
        for _ in range(1200):
            state = plant.read()
            supervisor.observe(state)
            truth = puppet.sent if name == "torque" else getattr(puppet, name)
            assert adapter.seen is not None
            errors.append(np.abs(getattr(adapter.seen, name) - truth)[0, 3])
            plant.write(Command(torque=supervisor.correct(state, puppet.nominal())))
        assert np.nanmax(errors[700:]) < room


def test_torque_from_what_was_sent() -> None:
    """A robot that reports no torque."""
    puppet = Puppet(2, 1)
    plant = FaultyReports(puppet, "torque zero", start=0.0)
    supervisor = Supervisor(Steady(2), SupervisorSettings(enable_ramp=0.0, torque_from="sent"))
    for _ in range(400):
        state = plant.read()
        supervisor.observe(state)
        plant.write(Command(torque=supervisor.correct(state, puppet.nominal())))
    assert not any(supervisor.counts.values())


def test_fast_joints_fade_softly_out_of_their_range() -> None:
    """No cut: the correction goes with the velocity, and is whole up to the margin."""
    supervisor = Supervisor(Steady(1), SupervisorSettings(enable_ramp=0.0))
    speed, position, before = 0.0, ROBOT.home[None].copy(), None
    limit = ROBOT.velocity_limit[0]
    sent = np.zeros((1, N))
    for tick in range(2500):
        speed += 2.5 * limit * DT if tick < 1000 else 0.0
        velocity = np.zeros((1, N))
        velocity[0, 0] = speed
        position = position + DT * velocity
        position[0, 0] = (position[0, 0] + 1.0) % 2.0 - 1.0 if tick == 0 else position[0, 0]
        supervisor._reports.motion.offset[...] = 0.0
        state = State(tick * DT, position, velocity, sent)
        supervisor.observe(state)
        sent = supervisor.correct(state, np.zeros((1, N)))
        assert before is None or np.abs(sent - before).max() < 0.03
        if speed < 1.5 * limit and abs(position[0, 0]) < ROBOT.upper[0]:
            np.testing.assert_allclose(sent, 1.0)
        before = sent
    np.testing.assert_allclose(sent, 0.0, atol=1e-12)
    assert supervisor.counts[Health.OUT_OF_RANGE] > 0


def test_seconds_at_a_limit_trip_a_joint_off_until_it_is_within_again() -> None:
    class Greedy(Steady):
        much = 1.0

        def correct(self, state: State, nominal_torque: np.ndarray) -> np.ndarray:
            more = nominal_torque + 1.0
            more[:, 2] += self.much * 100.0
            return more

    puppet, adapter = Puppet(1, 2), Greedy(1)
    settings = SupervisorSettings(enable_ramp=0.0, trip_after=0.2, rearm=0.3, max_contact_force=np.inf)
    supervisor = Supervisor(adapter, settings)
    gains = []
    for tick in range(2000):
        adapter.much = 1.0 if tick < 800 else 0.0
        state = puppet.read()
        supervisor.observe(state)
        puppet.write(Command(torque=supervisor.correct(state, 0.2 * puppet.nominal())))
        gains.append(supervisor.gain[0].copy())
    gain = np.array(gains)
    np.testing.assert_array_equal(gain[150], 1.0)
    assert gain[600, 2] == 0.0 and supervisor.counts[Health.TRIPPED] > 0
    np.testing.assert_array_equal(gain[-1], 1.0)
    np.testing.assert_array_equal(np.delete(gain, 2, axis=1), 1.0)


@pytest.mark.parametrize("missing", [0.03, 1.0, 10.0])
def test_after_a_gap_the_robot_may_be_elsewhere_under_another_torque(missing: float) -> None:
    puppet, supervisor = Puppet(2, 7), Supervisor(Steady(2), SupervisorSettings(enable_ramp=0.0))
    for tick in range(1200):
        if tick == 600:  # somebody else moved it meanwhile
            puppet.tick += round(missing / DT)
            puppet.sent = 0.5 * ROBOT.torque_limit - puppet.sent
        state = puppet.read()
        if tick >= 900:
            state.torque = 0.0 * state.torque
        supervisor.observe(state)
        puppet.write(Command(torque=supervisor.correct(state, puppet.nominal())))
        if tick == 600:
            assert np.all(supervisor.health & int(Health.GAP))
        if tick < 900:
            assert not np.any(supervisor.health & int(Health.TORQUE_REPORT)) and np.all(supervisor.gain == 1.0), tick
    assert np.all(supervisor.health & int(Health.TORQUE_REPORT)) and np.any(supervisor.gain == 0.0)
