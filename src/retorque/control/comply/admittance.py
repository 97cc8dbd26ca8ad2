"""Admittance: a mass on a spring and a damper at each site, moved by commanded and external wrenches (1, 11, 12)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.control.comply.compliance_action import ComplianceAction, critical_damping, isotropic
from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.rotation_steps import rotate_by, rotation_between
from retorque.physics.kernels.compiled import cholesky_solve, kernel
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

EDGE = 0.1
"""Share of the tank below which what injects energy is scaled down."""
CLAMPED, WAITING, LOW = 1, 2, 4
"""Flags of a step: a velocity was clamped, a goal waits for the tank, a tank is nearly empty."""


@dataclass(frozen=True, kw_only=True)
class AdmittanceSettings:
    """Settings of the virtual masses."""

    mass: float = 1.0
    """m of equation 1 [kg]."""
    inertia: float = 1.0
    """The same for rotations [kg·m²]."""
    speed: float = 0.5
    """Largest speed of a reference [m/s]."""
    turn_speed: float = 3.0
    """Largest angular speed of a reference [rad/s]."""
    acceleration: float = 20.0
    """Largest acceleration of a reference [m/s²]."""
    turn_acceleration: float = 100.0
    """Largest angular acceleration of a reference [rad/s²]."""
    gain_time: float = 0.1
    """Time over which new gains come in [s]."""
    tank: float = 2.0
    """Energy that may be injected before the tank is empty [J]."""
    tank_power: float = 1.0
    """Power with which the task refills the tank; 0: only what is dissipated [W]."""
    stale_after: float = 0.3
    """Age of a command at which the watchdog softens [s]."""
    soft: float = 0.3
    """Share of the stiffness that is left when it has."""
    implicit: bool = True
    """Step spring and damper implicitly, stable at any stiffness; without: equations 11 and 12 as published."""


@kernel
def _take(
    position: Array,
    rotation: Array,
    velocity: Array,
    wrench: Array,
    goal: Array,
    goal_turn: Array,
    goal_velocity: Array,
    commanded: Array,
) -> bool:
    """Take a command over, all flat and of the goals' sizes; False, and nothing taken, where it is not finite."""
    for x in position:
        if not np.isfinite(x):
            return False
    for x in rotation:
        if not np.isfinite(x):
            return False
    for x in velocity:
        if not np.isfinite(x):
            return False
    for x in wrench:
        if not np.isfinite(x):
            return False
    goal[:] = position
    goal_turn[:] = rotation
    goal_velocity[:] = velocity
    commanded[:] = wrench
    return True


@kernel
def _stored(position: Array, rotation: Array, goal: Array, goal_turn: Array, stiffness: Array, error: Array) -> float:
    """Energy of one trial's springs [J]; fills the errors (sites, 6)."""
    near, energy = np.empty(3), 0.0
    for s in range(position.shape[0]):
        e = error[s]
        for i in range(3):
            near[i] = e[3 + i]
            e[i] = goal[s, i] - position[s, i]
        rotation_between(rotation[s], goal_turn[s], near, e[3:])
        for i in range(6):
            for j in range(6):
                energy += 0.5 * e[i] * stiffness[s, i, j] * e[j]
    return energy


@kernel
def _moving(velocity: Array, mass: float, inertia: float) -> float:
    """Energy of one trial's masses [J]."""
    energy = 0.0
    for s in range(velocity.shape[0]):
        for i in range(6):
            energy += 0.5 * (mass if i < 3 else inertia) * velocity[s, i] ** 2
    return energy


@kernel
def _step(
    dt: float,
    limits: Array,
    goal: Array,
    goal_before: Array,
    goal_turn: Array,
    goal_velocity: Array,
    stiffness: Array,
    damping: Array,
    growth: Array,
    commanded: Array,
    external: Array,
    position: Array,
    rotation: Array,
    velocity: Array,
    error: Array,
    energy: Array,
    flags: Array,
) -> int:
    """One step of every mass; what was flagged of any; see `Admittance`."""
    flagged = 0
    tank, injected, spring, share = energy[0], energy[1], energy[2], energy[3]
    mass, inertia, speed, turn_speed, acceleration, turn_acceleration, capacity, refill, implicit = limits
    a, b, near, new = np.empty((6, 6)), np.empty((6, 1)), np.empty(3), np.empty((3, 3))
    for t in range(position.shape[0]):
        flags[t] = 0
        # What a goal that jumps or a stiffness that grows puts into the springs is paid at once, or waits.
        begins = _stored(position[t], rotation[t], goal[t], goal_turn[t], stiffness[t], error[t])
        jump = begins - spring[t]
        if jump > tank[t]:
            part = max(tank[t], 0.0) / jump
            for s in range(position.shape[1]):
                for i in range(3):
                    goal[t, s, i] = goal_before[t, s, i] + part * (goal[t, s, i] - goal_before[t, s, i])
                for i in range(6):
                    for j in range(6):
                        stiffness[t, s, i, j] -= (1.0 - part) * growth[t, s, i, j]
            begins = _stored(position[t], rotation[t], goal[t], goal_turn[t], stiffness[t], error[t])
            jump = begins - spring[t]
            flags[t] |= WAITING
        begins += _moving(velocity[t], mass, inertia)
        for s in range(position.shape[1]):
            e, v, w = error[t, s], velocity[t, s], goal_velocity[t, s]
            for i in range(6):
                pull, drag = 0.0, 0.0
                for j in range(6):
                    pull += stiffness[t, s, i, j] * e[j]
                    drag += damping[t, s, i, j] * (w[j] - v[j])
                b[i, 0] = pull + drag + share[t] * commanded[t, s, i] + external[t, s, i]
                for j in range(6):
                    step = dt * damping[t, s, i, j] + dt * dt * stiffness[t, s, i, j]
                    a[i, j] = implicit * 0.5 * (step + dt * damping[t, s, j, i] + dt * dt * stiffness[t, s, j, i])
                a[i, i] += mass if i < 3 else inertia
            if not cholesky_solve(a, b):
                continue
            big = (b[0, 0] ** 2 + b[1, 0] ** 2 + b[2, 0] ** 2) ** 0.5
            turning = (b[3, 0] ** 2 + b[4, 0] ** 2 + b[5, 0] ** 2) ** 0.5
            slow = min(1.0, acceleration / max(big, 1e-12))
            slow_turn = min(1.0, turn_acceleration / max(turning, 1e-12))
            for i in range(6):
                v[i] += dt * b[i, 0] * (slow if i < 3 else slow_turn)
            fast = (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) ** 0.5
            spinning = (v[3] ** 2 + v[4] ** 2 + v[5] ** 2) ** 0.5
            keep, keep_turn = min(1.0, speed / max(fast, 1e-12)), min(1.0, turn_speed / max(spinning, 1e-12))
            if min(min(slow, slow_turn), min(keep, keep_turn)) < 1.0:
                flags[t] |= CLAMPED
            for i in range(3):
                v[i] *= keep
                v[3 + i] *= keep_turn
                near[i] = dt * v[3 + i]
                position[t, s, i] += dt * v[i]
            rotate_by(near, rotation[t, s], new)
            rotation[t, s] = new
        # The balance of the step itself: what masses and springs have gained beyond the work of what is felt.
        spring[t] = _stored(position[t], rotation[t], goal[t], goal_turn[t], stiffness[t], error[t])
        gained = spring[t] + _moving(velocity[t], mass, inertia) - begins
        for s in range(position.shape[1]):
            for i in range(6):
                gained -= dt * external[t, s, i] * velocity[t, s, i]
        injected[t] += max(jump, 0.0) + max(gained, 0.0)
        # It may owe what one step has taken too much; nothing more is injected before that is paid.
        tank[t] = min(capacity, tank[t] + dt * refill - jump - gained)
        flagged |= flags[t] | (LOW if tank[t] < EDGE * capacity else 0)
    return flagged


class Admittance:
    """Where the sites should be, given what is asked and what is felt; of one robot or a batch.

    New gains come in over a short time, velocities and accelerations are clamped, a command that is not renewed turns
    into a soft spring where it last was, and what injects energy (a goal that moves or jumps, a commanded wrench,
    growing stiffness) is paid from a tank: when it is empty, these are scaled down until dissipation and the task's
    allowance refill it. Masses, springs and tank together never gain more than the allowance and the work of what is
    felt.

    Args:
        sites: how many frames.
        trials: robots served at once.
        timestep: control period [s].
        settings: masses, clamps, tank, watchdog.
    """

    def __init__(self, sites: int, trials: int = 1, timestep: float = 0.02, settings: AdmittanceSettings | None = None):
        self.settings = s = settings or AdmittanceSettings()
        if not (s.mass > 0.0 and s.inertia > 0.0):
            raise RetorqueError("the virtual mass and inertia must be above 0")
        self.timestep, self.sites, self.trials = timestep, sites, trials
        lead = (trials, sites)
        self.position, self.rotation = np.zeros((*lead, 3)), np.zeros((*lead, 3, 3))
        self.velocity, self.error = np.zeros((*lead, 6)), np.zeros((*lead, 6))
        self._energy = np.zeros((4, trials))
        self.tank, self.injected, self._spring, self._share = self._energy
        self.codes = np.zeros(trials, dtype=np.int64)
        """(trials,) `ComplyCode`s of the last step."""
        self._clean = self.codes.copy()
        self._goal, self._goal_before = np.zeros((*lead, 3)), np.zeros((*lead, 3))
        self._goal_turn = np.zeros((*lead, 3, 3))
        self._goal_velocity, self._commanded = np.zeros((*lead, 6)), np.zeros((*lead, 6))
        self._none = np.zeros((*lead, 6))
        self.stiffness = np.broadcast_to(isotropic(100.0, 10.0), (*lead, 6, 6)).copy()
        self.damping = critical_damping(self.stiffness)
        self._wanted = self.stiffness.copy(), self.damping.copy()
        self._told: tuple[Array | None, Array | None] = (None, None)
        self._growth = np.zeros((*lead, 6, 6))
        self._share[:], self._flags = 1.0, np.zeros(trials, dtype=np.int64)
        self._softness = 0.0
        self._settled = self._arrived = self._low = False
        clamps = (s.speed, s.turn_speed, s.acceleration, s.turn_acceleration)
        self._limits = np.array([s.mass, s.inertia, *clamps, s.tank, s.tank_power, 1.0 if s.implicit else 0.0])

    def reset(self, position: Array, rotation: Array) -> None:
        """Begin at rest at poses (trials, sites, ...)."""
        self.position[:], self.rotation[:] = position, rotation
        self._goal[:], self._goal_turn[:] = position, rotation
        self.velocity[:], self._goal_velocity[:], self._commanded[:] = 0.0, 0.0, 0.0
        self.error[:] = 0.0
        self.tank[:], self.injected[:], self._share[:] = self.settings.tank, 0.0, 1.0
        self._spring[:] = 0.0
        self._told, self._settled, self._softness = (None, None), False, 0.0
        self._arrived = self._low = False

    def step(self, action: ComplianceAction, external: Array, now: float, wary: Array | None = None) -> None:
        """Move on by one control period under external wrenches (trials, sites, 6).

        Args:
            action: what is asked.
            external: what is felt on the robot, world axes [N, N·m].
            now: time of the report [s].
            wary: (trials,) where stiffness should be soft, because what is felt cannot be trusted.
        """
        codes: Array | int = 0
        stale = now - action.time > self.settings.stale_after  # never, where the action has no time
        self._goal_before[:] = self._goal
        codes |= self._take_gains(action)
        codes |= self._take_goal(action, stale)
        self._blend(stale, wary)
        flagged = _step(
            self.timestep,
            self._limits,
            self._goal,
            self._goal_before,
            self._goal_turn,
            self._goal_velocity,
            self.stiffness,
            self.damping,
            self._growth,
            self._commanded,
            external,
            self.position,
            self.rotation,
            self.velocity,
            self.error,
            self._energy,
            self._flags,
        )
        edge = EDGE * self.settings.tank
        was, self._low = self._low, flagged & LOW > 0
        if self._low or was:
            low = self.tank < edge
            self._share[:] = np.where(low, np.maximum(self.tank, 0.0) / max(edge, 1e-12), 1.0)
            codes |= np.where(low, int(ComplyCode.TANK), 0)
        if flagged & ~LOW:
            codes |= np.where(self._flags & CLAMPED, int(ComplyCode.SPEED), 0)
            codes |= np.where(self._flags & WAITING, int(ComplyCode.TANK), 0)
        if stale:
            codes |= int(ComplyCode.STALE)
        self.codes = self._clean if isinstance(codes, int) and codes == 0 else self._clean | codes

    def _take_gains(self, action: ComplianceAction) -> int:
        """Check gains that are new; bad ones are left."""
        if action.stiffness is self._told[0] and action.damping is self._told[1]:
            return 0
        self._told = action.stiffness, action.damping
        shape = (self.trials, self.sites, 6, 6)
        stiffness = np.broadcast_to(np.asarray(action.stiffness, dtype=float), shape)
        if not _positive(stiffness):
            return int(ComplyCode.GAIN)
        masses = np.array([self.settings.mass] * 3 + [self.settings.inertia] * 3)
        if action.damping is None:
            root = np.sqrt(masses)
            damping = root[:, None] * critical_damping(stiffness / (root[:, None] * root)) * root
        else:
            damping = np.broadcast_to(np.asarray(action.damping, dtype=float), shape)
            if not _positive(damping):
                return int(ComplyCode.GAIN)
        self._wanted = stiffness.copy(), damping.copy()
        self._arrived = False
        if not self._settled:
            self.stiffness[:], self.damping[:] = stiffness, damping
        return 0

    def _take_goal(self, action: ComplianceAction, stale: bool) -> Array | int:
        """Codes (trials,) of what is asked for; what is not finite is left."""
        velocity = self._none if action.velocity is None else action.velocity
        wrench = self._none if action.wrench is None else action.wrench
        if not (stale or self._low) and self._fits(action.position, action.rotation, velocity, wrench):
            goals = (self._goal.ravel(), self._goal_turn.ravel(), self._goal_velocity.ravel(), self._commanded.ravel())
            if _take(action.position.ravel(), action.rotation.ravel(), velocity.ravel(), wrench.ravel(), *goals):
                return 0
        if not all(np.isfinite(part).all() for part in (action.position, action.rotation, velocity, wrench)):
            return self._take_finite_goals(action, stale)
        if stale:  # where it is now, and nothing pushes
            fade = np.exp(-self.timestep / self.settings.stale_after)
            self._goal_velocity[:] = 0.0
            self._commanded *= fade
            self._goal += (1.0 - fade) * (self.position - self._goal)
            self._goal_turn[:] = self.rotation
            self.error[..., 3:] = 0.0
            return 0
        self._goal_velocity[:] = velocity
        if self._low:  # an empty tank holds the goal back
            share = self._share[:, None, None]
            self._goal += share * (np.reshape(action.position, self._goal.shape) - self._goal)
            self._goal_velocity *= share
        else:
            self._goal[:] = action.position
        self._goal_turn[:] = action.rotation
        self._commanded[:] = wrench
        return 0

    def _fits(self, position: Array, rotation: Array, velocity: Array, wrench: Array) -> bool:
        """Whether a command is for these robots, one by one."""
        at, each = self._goal.size == position.size, self._commanded.size
        return at and self._goal_turn.size == rotation.size and velocity.size == each and wrench.size == each

    def _take_finite_goals(self, action: ComplianceAction, stale: bool) -> Array:
        """The goals of those robots whose own command is finite; the last good one of each of the others stands."""
        targets = (self._goal, self._goal_turn, self._goal_velocity, self._commanded)
        asked = [
            np.array(np.broadcast_to(kept if part is None else part, kept.shape), dtype=float)
            for part, kept in zip((action.position, action.rotation, action.velocity, action.wrench), targets)
        ]
        bad = ~np.all([np.isfinite(part).reshape(self.trials, -1).all(axis=1) for part in asked], axis=0)
        before = [target[bad].copy() for target in targets]
        for part, kept in zip(asked, before):
            part[bad] = kept
        position, rotation, velocity, wrench = asked
        finite = replace(
            action,
            position=position,
            rotation=rotation,
            velocity=None if action.velocity is None else velocity,
            wrench=None if action.wrench is None else wrench,
        )
        codes = self._take_goal(finite, stale)
        for target, kept in zip(targets, before):
            target[bad] = kept
        self._goal_velocity[bad] = 0.0
        return codes | np.where(bad, int(ComplyCode.BAD_COMMAND), 0)

    def _blend(self, stale: bool, wary: Array | None) -> None:
        """Bring the gains towards what is wanted, or towards soft ones."""
        s = self.settings
        rate = min(1.0, self.timestep / s.gain_time) if self._settled else 1.0
        self._settled = True
        aim = 0.0 if not stale else 1.0
        self._softness += min(1.0, self.timestep / s.stale_after) * (aim - self._softness)
        stiffness, damping = self._wanted
        calm = self._softness <= 1e-6 and wary is None
        if calm and self._arrived:
            return
        if self._softness > 1e-6 or (wary is not None and wary.any()):
            soft = np.full(self.trials, self._softness) if wary is None else np.maximum(self._softness, 1.0 * wary)
            stiffness = stiffness * (1.0 - soft * (1.0 - s.soft))[:, None, None, None]
        np.subtract(stiffness, self.stiffness, out=self._growth)
        self._growth *= rate
        if self._low:  # an empty tank holds the stiffness back
            self._growth *= self._share[:, None, None, None]
        self.stiffness += self._growth
        change = damping - self.damping
        self.damping += rate * change
        near = 1e-9 * float(np.abs(stiffness).max())
        self._arrived = calm and float(np.abs(self._growth).max()) < near and float(np.abs(change).max()) < near
        if self._arrived:
            self._growth[:] = 0.0


def _positive(matrix: Array) -> bool:
    """Whether matrices (..., 6, 6) are finite, symmetric and positive definite."""
    if (
        not np.isfinite(matrix).all()
        or np.abs(matrix - np.swapaxes(matrix, -1, -2)).max() > 1e-6 * np.abs(matrix).max()
    ):
        return False
    return bool(np.linalg.eigvalsh(matrix).min() > 0.0)
