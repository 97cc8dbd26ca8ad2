"""`retorque bench`: one command for each published table."""

from __future__ import annotations

from retorque.cli.verb import Verb, VerbGroup

BENCHES = VerbGroup(
    summary="a published table, ours beside theirs, with a 95 % interval",
    commands={
        "tracking": Verb(
            summary="joint tracking with hidden parameters, every adapter on the same targets (TAM, Table 3)",
            example="retorque bench tracking --robots panda z1 --adapters direct oracle --json tracking.json",
            module="bench.tracking",
            bare={"--payload-step": "1.0"},
        ),
        "worlds": Verb(
            summary="adapters where robots are touched, loaded, worn or misreported: worst ratio and regret of each",
            example="retorque bench worlds --worlds wall lean payload --adapters default recursive --json worlds.json",
            module="bench.worlds",
        ),
        "source-to-osc": Verb(
            summary="what is learnt under joint impedance, used in operational space (TAM, Table 2)",
            example="retorque bench source-to-osc --adapters direct recursive --trials 100 --json osc.json",
            module="bench.source_to_osc",
        ),
        "push": Verb(
            summary="a box pushed to a pose by a planner, under every adapter (TAM, Table 1)",
            example="retorque bench push --adapters direct tam-recursive --json push.json",
            module="bench.policy_tasks",
            settings="PushBench",
            function="push",
        ),
        "flip": Verb(
            summary="a cube flipped onto its next face, under every adapter (TAM, Table 1)",
            example="retorque bench flip --adapters direct tam-recursive --json flip.json",
            module="bench.policy_tasks",
            settings="FlipBench",
            function="flip",
        ),
        "ball": Verb(
            summary="a ball balanced on a plate from goal to goal, under every adapter (TAM, Table 1)",
            example="retorque bench ball --adapters direct tam-recursive --json ball.json",
            module="bench.policy_tasks",
            settings="BallBench",
            function="ball",
        ),
        "tam-bottleneck": Verb(
            summary="how wide the latent must be (TAM, Table F.2)",
            example="retorque bench tam-bottleneck --json bottleneck.json",
            module="bench.tam_bottleneck",
        ),
        "identification": Verb(
            summary="rigid-body identification, SDP against gradient methods (hybrid models, Table I)",
            example="retorque bench identification --scale 0.1 --json identification.json",
            module="bench.identification",
        ),
        "inverse-dynamics": Verb(
            summary="inverse-dynamics models, end to end and in two steps (hybrid models, Table II)",
            example="retorque bench inverse-dynamics --scale 0.1 --json inverse-dynamics.json",
            module="bench.inverse_dynamics",
        ),
        "impedance-tracking": Verb(
            summary="the models as feed-forward at soft, medium and stiff gains (hybrid models, Table III)",
            example="retorque bench impedance-tracking --scale 0.1 --json impedance-tracking.json",
            module="bench.impedance_tracking",
        ),
        "real-logs": Verb(
            summary="identification from recordings of real robots",
            example="retorque bench real-logs --json real-logs.json",
            module="bench.real_logs",
        ),
        "speed": Verb(
            summary="time of each hot path, and simulation steps a second",
            example="retorque bench speed --json speed.json",
            module="bench.speed",
        ),
    },
)
