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
        "source-to-osc": Verb(
            summary="what is learnt under joint impedance, used in operational space (TAM, Table 2)",
            example="retorque bench source-to-osc --adapters direct recursive --trials 100 --json osc.json",
            module="bench.source_to_osc",
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
        "wrench": Verb(
            summary="wrenches from motor signals against the true ones (minimalist compliance, Figure 3)",
            example="retorque bench wrench --robots arx_x5 --trials 4 --json wrench.json",
            module="bench.wrench",
        ),
        "compliance": Verb(
            summary="a heart on a misplaced board, free-standing (minimalist compliance, Table I)",
            example="retorque bench compliance --trials 2 --methods retorque position --json compliance.json",
            module="bench.compliance",
        ),
        "comply-speed": Verb(
            summary="time of one compliance step, from motor reports to joint targets",
            example="retorque bench comply-speed --robots arx_x5 --ticks 500",
            module="bench.comply_speed",
        ),
        "speed": Verb(
            summary="time of each hot path, and simulation steps a second",
            example="retorque bench speed --json speed.json",
            module="bench.speed",
        ),
    },
)
