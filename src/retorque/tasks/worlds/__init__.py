"""The worlds of `retorque bench worlds`, by name: frozen before anything was scored in them."""

from __future__ import annotations

from retorque.tasks.worlds.bench_world import FAMILIES, BenchWorld

RATES = {1000: 1e-3, 500: 2e-3, 200: 5e-3}
"""Control rates [Hz] and their periods [s]."""
ALL: tuple[BenchWorld, ...] = (
    BenchWorld(name="usual", about="hidden parameters of Table B.1", family="today"),
    BenchWorld(name="nothing-hidden", about="the ideal robot", family="today", hidden="nothing"),
    *(
        BenchWorld(name=name, about=about, family="today", effect=name)
        for name, about in (
            ("lugre", "stick-slip on top"),
            ("ripple", "torque ripple of the gears"),
            ("flexibility", "springs in the joints"),
            ("backlash", "springs and 0.1 deg of play"),
            ("delay", "commands 3 ms late"),
        )
    ),
    BenchWorld(name="pulses", about="five joint pulses of 0.08-0.8 s", family="today", touch="pulses"),
    BenchWorld(name="pulses-long", about="three joint pulses of 2-4 s", family="touch", touch="pulses-long"),
    BenchWorld(name="push-hand", about="5-80 N at the hand for 0.08-0.8 s", family="touch", touch="push-hand"),
    BenchWorld(name="push-arm", about="5-80 N at the middle of the arm, 0.08-0.8 s", family="touch", touch="push-arm"),
    BenchWorld(name="push-hand-long", about="5-80 N at the hand for 2-4 s", family="touch", touch="push-hand-long"),
    BenchWorld(name="push-arm-long", about="5-80 N at the middle of the arm, 2-4 s", family="touch",
               touch="push-arm-long"),
    BenchWorld(name="lean", about="a steady 20 N at the hand for 10 s", family="touch", touch="lean"),
    BenchWorld(name="lean-nothing", about="the same, nothing hidden", family="touch", touch="lean", hidden="nothing"),
    BenchWorld(name="pulses-nothing", about="joint pulses, nothing hidden", family="touch", touch="pulses",
               hidden="nothing"),
    BenchWorld(name="wall-lean", about="a soft wall leans 6 cm into the hand for 8 s", family="walls",
               touch="wall-lean", motion="learn-hold"),
    BenchWorld(name="wall", about="presses 5 cm into a wall for 5 s", family="walls", touch="wall", motion="press",
               duration=12.0),
    BenchWorld(name="wall-nothing", about="the same, nothing hidden", family="walls", touch="wall", motion="press",
               duration=12.0, hidden="nothing"),
    BenchWorld(name="wall-60", about="presses 5 cm into a wall for 60 s", family="walls", touch="wall", motion="press",
               duration=67.0),
    BenchWorld(name="wall-elbow", about="presses 3 cm into a wall with the elbow for 5 s", family="walls",
               touch="wall-elbow", motion="press-elbow", duration=12.0),
    BenchWorld(name="payload-cycles", about="2 kg picked up and dropped every 4 s", family="payload", change="cycles"),
    BenchWorld(name="payload-step", about="1 kg picked up half-way", family="payload", change="pick-up"),
    BenchWorld(name="gain-step", about="all drives lose 15 % half-way", family="drive", change="gain-step"),
    BenchWorld(name="gain-step-joint", about="one drive loses 15 % half-way", family="drive", change="gain-step-joint"),
    BenchWorld(name="gain-drift", about="drive gains drift by 10 %", family="drive", change="gain-drift"),
    BenchWorld(name="friction-thermal", about="friction falls to a third as it warms", family="friction",
               change="thermal"),
    BenchWorld(name="friction-position", about="friction that depends on position", family="friction",
               effect="position-friction"),
    *(
        BenchWorld(name=f"{quantity}-{fault}", about=f"{quantity} reports {word} from 4 s on", family="report",
                   fault=f"{quantity}-{fault}")
        for quantity in ("torque", "velocity")
        for fault, word in (("zero", "are zero"), ("stuck", "are stuck"), ("scaled", "are 1.5 x too large"),
                            ("flipped", "have the wrong sign"))
    ),
    BenchWorld(name="velocity-zero-joint", about="one joint reports no velocity, 4-12 s", family="report",
               fault="velocity-zero-joint"),
    BenchWorld(name="encoder-dead", about="one joint's encoder stands still, 4-6 s", family="report",
               fault="encoder-dead"),
    BenchWorld(name="nan", about="5 % of the reports are not numbers", family="report", fault="nan"),
    BenchWorld(name="repeated", about="5 % of the reports repeat the last one", family="report", fault="repeated"),
    BenchWorld(name="jitter", about="stamps jitter by 0.4 of a period", family="clock", fault="jitter"),
    BenchWorld(name="clock-back", about="the clock is set back by 2 s", family="clock", fault="clock-back"),
    *(
        BenchWorld(name=f"rate-{rate}", about=f"control at {rate} Hz", family="clock", timestep=period)
        for rate, period in RATES.items() if rate != 1000
    ),
    BenchWorld(name="twice", about="hidden parameters from twice the ranges", family="ranges", hidden="twice"),
    *(
        BenchWorld(name=name, about=about, family="motion", motion=name)
        for name, about in (
            ("slow", "sines ten times slower"),
            ("stepped", "targets that jump every 2 s"),
            ("held", "stands at home"),
            ("teleoperated", "targets at 30 Hz, with pauses"),
            ("fast", "near the velocity limits"),
        )
    ),
    BenchWorld(name="tilted", about="base tilted by 5 deg", family="geometry", body="tilted"),
    BenchWorld(name="longer", about="a link 3 cm longer than told", family="geometry", body="longer"),
)  # fmt: skip
"""Every world; rates of 1000 Hz are those of all the others."""
WORLDS = {world.name: world for world in ALL}

__all__ = ["ALL", "FAMILIES", "WORLDS", "BenchWorld"]
