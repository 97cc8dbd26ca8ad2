"""`retorque demo`."""

from __future__ import annotations

from retorque.cli.verb import Verb

DEMO = Verb(
    summary="the main job in a minute: hidden payload and friction, every adapter, table + plot + page",
    example="retorque demo",
    module="bench.demo.first_look",
)
