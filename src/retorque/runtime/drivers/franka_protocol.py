"""The research interface between libfranka and a Franka control box, version 10: messages as they lie on the wire.

Facts from the public headers of libfranka-common, completed by what libfranka 0.21.3 accepts; little-endian, packed,
commands over TCP, states and torques over UDP.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import numpy as np

VERSION = 10
PORT = 1337
HEADER = struct.Struct("<III")
"""Command, its number, size of the whole message with this header [bytes]."""
CONNECT = struct.Struct("<HH")
"""The client's version and the UDP port where it listens."""
CONNECTED = struct.Struct("<BH")
"""Status and the box's version."""
MOVE = struct.Struct("<II")
"""Controller mode and motion generator mode; limits of the motion follow, their number depends on the version."""
COMMAND = struct.Struct("<Q7d7d16d6d2d??7d?")
"""The state's number that it answers, a motion (joint positions, joint velocities, pose, twist, elbow, whether the
elbow is given, whether the motion is over), torques without gravity [N·m], whether they are over."""
TORQUES = slice(1 + 7 + 7 + 16 + 6 + 2 + 2, 1 + 7 + 7 + 16 + 6 + 2 + 2 + 7)
"""Where the torques lie in an unpacked command."""
OVER = (TORQUES.start - 1, TORQUES.stop)
"""Where an unpacked command says that its motion or its torques are over."""


class Request(IntEnum):
    """What a client asks over TCP."""

    CONNECT = 0
    MOVE = 1
    STOP_MOVE = 2
    SET_COLLISION_BEHAVIOR = 3
    SET_JOINT_IMPEDANCE = 4
    SET_CARTESIAN_IMPEDANCE = 5
    SET_GUIDING_MODE = 6
    SET_EE_TO_K = 7
    SET_NE_TO_EE = 8
    SET_LOAD = 9
    AUTOMATIC_ERROR_RECOVERY = 10
    GET_ROBOT_MODEL = 11


class MoveStatus(IntEnum):
    """How a motion began or ended."""

    SUCCESS = 0
    STARTED = 1
    PREEMPTED = 2
    PREEMPTED_BY_SAFETY = 3
    REJECTED_BY_SAFETY = 4
    NOT_POSSIBLE = 5
    SINGULAR_POSE = 6
    INVALID_ARGUMENT = 7
    REFLEX = 8
    EMERGENCY = 9
    INPUT_ERROR = 10
    ABORTED = 11


class RobotMode(IntEnum):
    """What the arm is doing."""

    OTHER = 0
    IDLE = 1
    MOVE = 2
    GUIDING = 3
    REFLEX = 4
    USER_STOPPED = 5
    RECOVERY = 6


EXTERNAL_CONTROLLER, OTHER_CONTROLLER = 2, 3
"""Controller modes of a state while a client sends torques, and while none does."""
COMMUNICATION, TORQUE_JUMP, JOINT_VELOCITY, JOINT_REFLEX, JOINT_POSITION = 25, 32, 3, 6, 0
"""Numbers of errors: lost commands, a torque that jumps, a joint too fast, a collision, a joint beyond its limits."""

STATE = np.dtype(
    [
        ("message_id", "<u8"),
        *((name, "<f4", (16,)) for name in ("O_T_EE", "O_T_EE_d", "F_T_EE", "EE_T_K", "F_T_NE", "NE_T_EE")),
        ("m_ee", "<f4"),
        ("I_ee", "<f4", (9,)),
        ("F_x_Cee", "<f4", (3,)),
        ("m_load", "<f4"),
        ("I_load", "<f4", (9,)),
        ("F_x_Cload", "<f4", (3,)),
        ("elbow", "<f4", (2,)),
        ("elbow_d", "<f4", (2,)),
        *(
            (name, "<f4", (7,))
            for name in ("tau_J", "tau_J_d", "dtau_J", "q", "q_d", "dq", "dq_d", "ddq_d", "joint_contact")
        ),
        ("cartesian_contact", "<f4", (6,)),
        ("joint_collision", "<f4", (7,)),
        ("cartesian_collision", "<f4", (6,)),
        ("tau_ext_hat_filtered", "<f4", (7,)),
        *((name, "<f4", (6,)) for name in ("O_F_ext_hat_K", "K_F_ext_hat_K", "O_dP_EE_d")),
        ("O_ddP_O", "<f4", (3,)),
        *((name, "<f4", (2,)) for name in ("elbow_c", "delbow_c", "ddelbow_c")),
        ("O_T_EE_c", "<f4", (16,)),
        *((name, "<f4", (6,)) for name in ("O_dP_EE_c", "O_ddP_EE_c")),
        *((name, "<f4", (7,)) for name in ("theta", "dtheta")),
        ("further", "<f4", (36,)),  # in no public header; its place and size were found by asking the client
        ("motion_generator_mode", "u1"),
        ("controller_mode", "u1"),
        ("errors", "u1", (41,)),
        ("reflex_reason", "u1", (41,)),
        ("robot_mode", "u1"),
        ("control_command_success_rate", "<f4"),
    ]
)
"""A state as the box sends it every millisecond: numbers are float32 [rad, rad/s, N·m]."""


def message(request: int, number: int, payload: bytes) -> bytes:
    """A TCP message."""
    return HEADER.pack(request, number, HEADER.size + len(payload)) + payload
