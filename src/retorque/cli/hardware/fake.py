"""`retorque fake`: simulated counterparts that the makers' own clients can talk to."""

from __future__ import annotations

from retorque.cli.verb import Verb, VerbGroup

FAKES = VerbGroup(
    summary="a simulated robot with hidden parameters behind a maker's protocol, on this machine",
    commands={
        "franka": Verb(
            summary="a Franka control box that libfranka connects to (TCP and UDP, port 1337)",
            example="retorque fake franka --host 127.0.0.1 --seed 0",
            module="cli.hardware.serve",
            settings="FrankaBoxSettings",
            function="serve_franka",
            more=("retorque fake franka --host 127.0.0.2 --lockstep --faults reflex@2.5",),
        ),
        "dynamixel": Verb(
            summary="Dynamixel servos on a pseudo-terminal (protocol 2.0, position and current modes)",
            example="retorque fake dynamixel --robot leap_hand --seed 0",
            module="cli.hardware.serve",
            settings="DynamixelBusSettings",
            function="serve_dynamixel",
            more=("retorque fake dynamixel --corrupt 0.005 --faults silent@5",),
        ),
        "ros2": Verb(
            summary="a robot on ROS 2's topics, over DDS",
            example="retorque fake ros2 --robot panda --rate 500",
            module="cli.hardware.serve",
            settings="Ros2RobotSettings",
            function="serve_ros2",
        ),
        "ur": Verb(
            summary="a UR controller that ur_rtde connects to (dashboard, programs and RTDE)",
            example="retorque fake ur --host 127.0.0.1 --robot ur10e",
            module="cli.hardware.serve",
            settings="UrControllerSettings",
            function="serve_ur",
        ),
    },
)
