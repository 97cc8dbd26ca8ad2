"""The constants of the supervisor's core, read from the Python supervisor that it stands in for."""

from __future__ import annotations

import numpy as np

from retorque.loop.guard import blind_joints, brake, contact_force, fading, motion_check, report_check, torque_check
from retorque.loop.supervisor import Supervisor
from retorque.robots.robot import Frame, Robot
from retorque.runtime.compiled.structures import Constants


def supervisor_constants(supervisor: Supervisor) -> Constants:
    """Everything that the supervisor's core needs beside the robot and its adapter."""
    s, dt = supervisor.settings, supervisor.timestep
    reports, force, score = supervisor._reports, supervisor._force, supervisor.score
    motion, torque, unseen = reports.motion, reports.torque, supervisor._unseen
    return {
        "active": 1,
        "shadow": int(s.shadow),
        "from_sent": int(s.torque_from == "sent"),
        "watching": int(s.torque_from == "other"),
        "stale_ticks": supervisor._stale_ticks,
        "torque_ticks": torque.ticks,
        "torque_lag": torque._lag,
        "look": reports._look,
        "settled": motion._settled,
        "probation": motion.probation,
        "still_ticks": motion._still_ticks,
        "repeats": motion_check.REPEATS,
        "contradicted": motion.contradicted,
        "window": score._window,
        "points": len(force._points),
        "rounds": contact_force.ROUNDS,
        "limit": supervisor._limit,
        "residual_limit": supervisor.residual_limit,
        "step_limit": supervisor._step_limit,
        "report_limit": reports._limit,
        "tolerance": torque.tolerance,
        "speed": reports._speed,
        "low": reports._low,
        "high": reports._high,
        "home": supervisor.robot.home,
        "far": motion.far,
        "jump": motion.jump,
        "slip": motion._slip,
        "held": motion.held,
        "fastest": motion._fastest,
        "inertia": motion.inertia,
        "swing": force._swing,
        "rotor": force._rotor,
        "band": force._band,
        "point_link": np.array([_link_index(supervisor.robot, point) for point in force._points]),
        "point_place": np.array([point.position for point in force._points]),
        "relative": torque_check.RELATIVE,
        "margin": reports._margin,
        "absurd": report_check.ABSURD,
        "bridge": s.bridge,
        "suspicion_ease": report_check.EASE,
        "suspicion_most": report_check.MOST,
        "follow": motion._gain,
        "alpha": motion._alpha,
        "beta": motion._beta,
        "constant": motion_check.CONSTANT,
        "resolution": motion_check.RESOLUTION,
        "contrary": motion_check.CONTRARY,
        "wild": report_check.WILD,
        "brake": motion.brake,
        "halt": brake.HALT,
        "against": brake.HELD,
        "leap": motion_check.LEAP,
        "least_leap": motion_check.LEAST_LEAP,
        "slow": motion_check.SLOW,
        "restless": motion_check.RESTLESS,
        "restless_memory": motion_check.RESTLESS_MEMORY,
        "repeated": motion_check.REPEATED,
        "leap_memory": motion_check.LEAP_MEMORY,
        "blind_before": blind_joints.BEFORE,
        "blind_place": blind_joints.START[0],
        "blind_speed": blind_joints.START[1],
        "lost_place": blind_joints.LOST[0],
        "lost_speed": blind_joints.LOST[1],
        "blind_gone": blind_joints.GONE,
        "gone_place": blind_joints.ANYWHERE[0],
        "gone_speed": blind_joints.ANYWHERE[1],
        "blind_rate": unseen.rate,
        "blind_noise": unseen.noise_share,
        "blind_least": blind_joints.LEAST,
        "blind_doubt": blind_joints.DOUBT,
        "blind_nudge": np.array(blind_joints.NUDGES),
        "ramp": dt / max(s.enable_ramp, dt),
        "recovery": dt / max(s.recovery, dt),
        "fade": dt / max(s.fade, dt),
        "off": dt / max(fading.AT_ONCE, dt),
        "trip_after": s.trip_after,
        "rearm": s.rearm,
        "limit_ease": fading.EASE,
        "hold": s.hold,
        "score_rate": score._rate,
        "score_period": score.period,
        "force_most": force._told,
        "force_rate": force._rate,
        "force_follow": force._follow,
        "force_rest": contact_force.REST,
        "force_still": contact_force.STILL,
        "force_moves": contact_force.MOVES,
        "force_forget": force._forget,
        "force_travel": force._travel,
        "force_memory": contact_force.MEMORY,
        "heaviest": force._heaviest,
        "load_rate": force._learn,
        "most_load": contact_force.MOST_LOAD * force._heaviest,
        "least_lever": contact_force.LEAST_LEVER,
        "explained": contact_force.EXPLAINED,
    }


def _link_index(robot: Robot, frame: Frame) -> int:
    """The moving link that a frame is fixed to; -1 where it stands still."""
    names = [link.name for link in robot.moving_links]
    return names.index(frame.link) if frame.link in names else -1
