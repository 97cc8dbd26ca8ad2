"""`retorque comply`: contact tasks without force sensors."""

from __future__ import annotations

from retorque.cli.verb import Verb, VerbGroup

MODULE = "tasks.comply.comply_command"
COMPLY = VerbGroup(
    summary="contact without force sensors: draw, wipe, press, rotate, teleoperate",
    commands={
        "draw": Verb(
            summary="draw a shape on a board that is a little off",
            example="retorque comply draw --robot toddlerbot_2xm --shape heart --render heart.png",
            module=MODULE,
            settings="ComplySettings",
            function="draw",
        ),
        "wipe": Verb(
            summary="sweep a square with an eraser",
            example="retorque comply wipe --robot arx_x5 --render wipe.png",
            module=MODULE,
            settings="ComplySettings",
            function="wipe",
        ),
        "press": Verb(
            summary="press on one point and hold",
            example="retorque comply press --robot arx_x5",
            module=MODULE,
            settings="ComplySettings",
            function="press",
        ),
        "rotate": Verb(
            summary="turn an object in a hand, or a ball on the floor",
            example="retorque comply rotate --robot leap_hand --what cube --render cube.png",
            module="tasks.rotate.rotate_command",
            settings="RotateSettings",
            function="rotate",
        ),
        "teleoperate": Verb(
            summary="lead a spoon by script or by keys and mouse, and record it for imitation",
            example="retorque comply teleoperate --trials 4 --record scoops.safetensors --render scoop.png",
            module="tasks.scoop.teleoperate_command",
            settings="TeleoperateSettings",
            function="teleoperate",
            more=("retorque comply teleoperate --input keyboard --seconds 60",),
        ),
    },
)
