"""A planner port for vision-language models: the paper's prompt, and answers believed only if they are sound."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retorque.tasks.comply.stroke_shapes import Strokes, fitted, shape
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

KEY = "RETORQUE_VLM_KEY"
"""Environment variable with the key of the service."""
MOST_POINTS = 500
"""Waypoints a site that are accepted."""
LONGEST = 200_000
"""Characters of an answer that are read."""
TASKS = {
    "wipe": "Wipe up the black ink on the whiteboard using an eraser",
    "draw": "Draw the {label} on the whiteboard using a pen",
}
"""Task descriptions of Figure 7."""

Ask = Callable[[str, bytes], str]
"""Takes the prompt and a PNG image; returns the model's words."""


@dataclass(frozen=True, kw_only=True)
class VisionSettings:
    """Where the model is."""

    url: str = ""
    """Of a service that speaks OpenAI's chat interface; none: strokes without a model."""
    model: str = ""
    """Its model."""
    timeout: float = 30.0
    """[s]"""


def prompt(task: str, label: str, candidates: Mapping[str, Array]) -> str:
    """The paper's prompt (Figure 7) in its structure: task, object, candidate pixels by site, and the JSON wanted."""
    if task not in TASKS:
        raise RetorqueError(f"there is no prompt for '{task}'; there is one to {' and one to '.join(TASKS)}")
    lines = [f"Task: {TASKS[task].format(label=label)}", f"Target Object: {label}", "Candidate Contact Points:"]
    for site, points in candidates.items():
        lines.append(f"{site}: " + ", ".join(f"({int(x)}, {int(y)})" for x, y in points))
    wanted = {site: [[0, 0], [0, 0]] for site in candidates}
    lines += [
        "Action Requirements: for each site give an ordered list of waypoints (pixel coordinates) that traverses the",
        "target in one continuous path and leaves no larger part out. Choose key points only; the path is densified.",
        f"Output JSON Format: {json.dumps(wanted)}",
        "JSON Rules: valid JSON with double quotes, points in order, no explanations.",
    ]
    return "\n".join(lines)


def read_answer(answer: str, sites: Sequence[str], width: int, height: int) -> dict[str, Array]:
    """Waypoints (points, 2) [pixels] of each site from a model's answer; anything unsound is refused."""
    if not isinstance(answer, str) or len(answer) > LONGEST:
        raise RetorqueError(f"the planner's answer is no text of at most {LONGEST} characters; ask again")
    text = answer.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json").strip()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise RetorqueError("the planner's answer is not JSON; ask again") from None
    if not isinstance(data, dict) or set(data) != set(sites):
        raise RetorqueError(f"the planner's answer must have the sites {', '.join(sites)} and nothing else; ask again")
    found = {}
    for site in sites:
        points = data[site]
        if not isinstance(points, list) or not 2 <= len(points) <= MOST_POINTS:
            raise RetorqueError(f"the planner gave no list of 2 to {MOST_POINTS} waypoints for '{site}'; ask again")
        rows = []
        for point in points:
            plain = isinstance(point, list) and len(point) == 2
            if not plain or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in point):
                raise RetorqueError(f"a waypoint of '{site}' is not a pair of numbers; ask again")
            x, y = float(point[0]), float(point[1])
            if not (0.0 <= x < width and 0.0 <= y < height):
                raise RetorqueError(f"waypoint ({x:g}, {y:g}) of '{site}' lies outside the image; ask again")
            rows.append((x, y))
        found[site] = np.array(rows)
        if np.ptp(found[site], axis=0).max() <= 0.0:
            raise RetorqueError(f"all waypoints of '{site}' are one point; ask again")
    return found


class VisionPlanner:
    """Strokes for a task: from a model where one is set up, else from the shapes on board.

    Args:
        settings: where the model is.
        ask: how it is asked; default: over HTTP.
    """

    def __init__(self, settings: VisionSettings | None = None, ask: Ask | None = None):
        self.settings = settings or VisionSettings()
        self._ask = ask or self._over_http

    def strokes(
        self, task: str, label: str, site: str, image: bytes = b"", size: tuple[int, int] = (640, 480)
    ) -> Strokes:
        """Strokes on the unit square, y up.

        Args:
            task: draw or wipe.
            label: what is drawn, or wiped.
            site: which frame does it.
            image: PNG of the board.
            size: its width and height [pixels].
        """
        if not self.settings.url:
            return shape(label)
        width, height = size
        x, y = np.meshgrid(np.linspace(0.1, 0.9, 9) * width, np.linspace(0.1, 0.9, 9) * height)
        asked = prompt(task, label, {site: np.stack([x.ravel(), y.ravel()], axis=1)})
        points = read_answer(self._ask(asked, image), [site], width, height)[site]
        return fitted([points * [1.0, -1.0]])

    def _over_http(self, text: str, image: bytes) -> str:
        s, key = self.settings, os.environ.get(KEY, "")
        if not s.url.startswith(("http://", "https://")):
            raise RetorqueError(f"'{s.url}' is no address of a service; give one that begins with https://")
        content: list[dict[str, object]] = [{"type": "text", "text": text}]
        if image:
            url = "data:image/png;base64," + base64.b64encode(image).decode()
            content.append({"type": "image_url", "image_url": {"url": url}})
        body = json.dumps({"model": s.model, "messages": [{"role": "user", "content": content}]}).encode()
        request = urllib.request.Request(s.url.rstrip("/") + "/chat/completions", body, method="POST")
        request.add_header("Content-Type", "application/json")
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(request, timeout=s.timeout) as answer:
                data = json.loads(answer.read(LONGEST + 1)[:LONGEST])
            words = data["choices"][0]["message"]["content"]
        except (urllib.error.URLError, OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise RetorqueError(f"the planner at '{s.url}' did not answer ({error}); check --url and {KEY}") from None
        return str(words)
