"""`retorque task`: plays one of the TAM paper's tasks and draws what happened."""

from __future__ import annotations

from retorque.cli.verb import Verb, VerbGroup


def _verb(name: str, summary: str) -> Verb:
    return Verb(
        summary=summary,
        example=f"retorque task {name} --adapter default --render {name}.png",
        module="bench.show_task",
        settings="TaskSettings",
        function=f"show_{name}",
    )


TASKS = VerbGroup(
    summary="a task played by the ideal robot, a real one, and a real one with an adapter",
    commands={
        "push": _verb("push", "push a box to a pose on a table"),
        "flip": _verb("flip", "flip a cube onto its next face"),
        "ball": _verb("ball", "roll a ball from goal to goal on a plate"),
    },
)
