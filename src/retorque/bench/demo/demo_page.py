"""The demo's page: one HTML file with everything inside it, for light and dark."""

from __future__ import annotations

from typing import Any

import numpy as np

from retorque.adapt import ADAPTERS
from retorque.physics.selection import Selection
from retorque.tasks.tracking_task import TrackingTask
from retorque.work.array import Array
from retorque.work.files import versions
from retorque.work.page import data_address, escape, page

STYLE = """
.figures{display:flex;flex-wrap:wrap;gap:1rem;margin:1.6rem 0}
.figure{flex:1 1 11rem;background:var(--card);border:1px solid var(--line);border-radius:.7rem;padding:.9rem 1.1rem}
.figure b{display:block;font-size:1.9rem;line-height:1.15;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.figure span{color:var(--soft);font-size:.9rem}
.frame{border:1px solid var(--line);border-radius:.7rem;overflow:hidden;background:#f6f8fb}
.frame img{width:100%}
table{width:100%}
td.what{text-align:left;color:var(--soft);white-space:normal;min-width:14rem}
td.share{background:linear-gradient(to right,var(--bar) var(--w),transparent var(--w)) no-repeat;min-width:8rem}
tr.best td{font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.2rem;margin:.6rem 0}
dt{color:var(--soft)}dd{margin:0;font-variant-numeric:tabular-nums}
"""
"""What this page has beyond the skeleton."""


def demo_page(task: TrackingTask, rows: list[dict[str, Any]], shown: str, trial: int, images: dict[str, bytes]) -> str:
    """The whole page.

    Args:
        task: what was run.
        rows: one an adapter, as `first_look.summary` makes them.
        shown: the adapter that the pictures show.
        trial: the trial that they show.
        images: `plot.png`, `plot-dark.png` and `arm.gif`.
    """
    robot = task.robot.title or task.robot.name
    by_name = {row["name"]: row for row in rows}
    plain, helped = by_name["direct"], by_name[shown]
    s = task.settings
    body = f"""<h1>A robot that behaves like its model</h1>
<p class="soft">{escape(robot)}: {s.trials} simulated robots, each with another payload, friction, drive and
inertias that nobody is told about, and noisy sensors. Each follows a random motion of {s.duration:g} s under joint
impedance. What counts is the distance from the motion that the ideal robot makes under the same controller.</p>
<div class="figures">
<div class="figure bad"><b>{plain["rmse"]:.2f}°</b><span>joint error without correction</span></div>
<div class="figure good"><b>{helped["rmse"]:.2f}°</b><span>with <code>{shown}</code>, cold start included</span></div>
<div class="figure good"><b>{helped["last"]:.2f}°</b><span>with <code>{shown}</code>, last 2 s</span></div>
<div class="figure"><b>{plain["rmse"] / max(helped["rmse"], 1e-9):.0f} ×</b><span>closer to the model</span></div>
</div>
<h2>The robot with the heaviest payload</h2>
<div class="frame">
<img src="{data_address("image/gif", images["arm.gif"])}" alt="The arm without and with correction" width="800">
</div>
<h2>Where the joints go</h2>
<picture><source media="(prefers-color-scheme: dark)" srcset="{data_address("image/png", images["plot-dark.png"])}">
<img src="{data_address("image/png", images["plot.png"])}" alt="Joint angles and errors over time"></picture>
<p class="soft">Left: robot {trial + 1}, which carries the heaviest payload, in the two joints that err most. Right:
every adapter on board, root mean square over all joints and trials, logarithmic.</p>
<h2>Every adapter on the same robots</h2>
<div class="scroll"><table>
<thead><tr><th>adapter</th><th>joint RMSE</th><th>of uncorrected</th><th>first 2 s</th><th>last 2 s</th>
<th>worst trial</th><th></th></tr></thead>
<tbody>
{"".join(_row(row, shown) for row in rows)}</tbody></table></div>
<p class="soft">Degrees. <code>oracle</code> knows the hidden parameters and is the floor;
<code>direct</code> is no correction.</p>
<h2>What was hidden from robot {trial + 1}</h2>
{_hidden(task, trial)}
<h2>Again, with other numbers</h2>
<p><code>retorque demo --robot z1 --seed {s.seed + 1}</code></p>
<p><code>retorque bench tracking --robots panda --adapters direct {shown} --trials 100</code></p>
<footer>Seed {s.seed}. {escape(", ".join(f"{k} {v}" for k, v in versions().items()))}.</footer>"""
    return page(f"Retorque demo: {robot}", body, STYLE)


def _row(row: dict[str, Any], shown: str) -> str:
    share = 100.0 * row["share"]
    mark = ' class="best"' if row["name"] == shown else ""
    figures = "".join(f"<td>{row[key]:.3f}</td>" for key in ("first", "last", "worst"))
    return (
        f"<tr{mark}><td><code>{row['name']}</code></td><td>{row['rmse']:.3f}</td>"
        f'<td class="share" style="--w:{min(share, 100.0):.1f}%">{share:.1f} %</td>{figures}'
        f'<td class="what">{escape(ADAPTERS[row["name"]][1])}</td></tr>\n'
    )


def _hidden(task: TrackingTask, trial: int) -> str:
    """The parameters of one trial, in words."""
    p = task.parameters

    def span(values: Array, digits: int = 2) -> str:
        return f"{values.min():.{digits}f} to {values.max():.{digits}f}"

    centre = np.linalg.norm(p.payload_centre[trial]) * 100.0
    links = Selection(task.robot, ("mass_scale", "centre"))
    scale, offset = links.split(links.to_vector(p[trial]) - links.to_vector(links.base))
    entries = {
        "payload": f"{p.payload_mass[trial]:.2f} kg, {centre:.1f} cm off its mount",
        "friction": f"{span(p.friction_amplitude[trial])} N·m, and {span(p.viscous[trial])} N·m·s/rad of damping",
        "drive": f"gain {span(p.torque_scale[trial], 3)}, bias {span(p.torque_bias[trial])} N·m, "
        f"dead zone {span(p.dead_zone[trial])} N·m",
        "rotors": f"{span(p.armature[trial], 3)} kg·m² (the model says {span(task.robot.armature, 3)})",
        "links": f"mass times {span(1.0 + scale)}, centres up to {1000.0 * np.abs(offset).max():.0f} mm off per axis",
        "sensors": f"{1e3 * task.sensors.velocity_noise[trial]:.1f} mrad/s of velocity noise, reported torques "
        f"{int(task.sensors.torque_delay[trial])} ms late",
    }
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in entries.items()) + "</dl>"
