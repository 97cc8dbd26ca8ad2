"""`retorque drive`, `record`, `replay` and `learner`: on the robot."""

from __future__ import annotations

from retorque.cli.verb import Verb

DRIVE = Verb(
    summary="a robot under an adapter: watches, or with --act sends torques",
    example="retorque drive --driver franka --host 192.168.1.1 --robot panda --adapter default --duration 60",
    module="runtime.drive",
    settings="DriveSettings",
    function="drive",
    more=(
        "retorque drive --driver franka --host 127.0.0.1 --robot panda --act --motion sines --record run.mcap",
        "retorque drive --driver dynamixel --host /dev/ttyUSB0 --robot leap_hand --act --shadow --motion sines",
    ),
)

RECORD = Verb(
    summary="every tick of a robot into an MCAP file, while somebody else drives it",
    example="retorque record --driver franka --host 192.168.1.1 --robot panda --out run.mcap --duration 60",
    module="runtime.drive",
    settings="RecordSettings",
    function="record",
)
REPLAY = Verb(
    summary="what an adapter would have done on a recorded run; also Parquet and ROS 2 bags",
    example="retorque replay run.mcap --adapter default",
    module="runtime.recording.replay",
    settings="ReplaySettings",
    function="replay",
    more=("retorque replay run.mcap --adapter direct --parquet run.parquet --ros2 run_bag",),
)
LEARNER = Verb(
    summary="learns for a robot that another machine drives",
    example="retorque learner --robot panda --adapter default --listen 127.0.0.1:5750",
    module="cli.hardware.serve",
    settings="LearnerSettings",
    function="learner",
)
