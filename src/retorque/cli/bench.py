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
        "told": Verb(
            summary="whether a payload is told from a push at the hand within a second",
            example="retorque bench told --robots panda --trials 50 --json told.json",
            module="bench.told",
        ),
        "source-to-osc": Verb(
            summary="what is learnt under joint impedance, used in operational space (TAM, Table 2)",
            example="retorque bench source-to-osc --adapters default direct --trials 100 --json osc.json",
            module="bench.source_to_osc",
        ),
        "push": Verb(
            summary="a box pushed to a pose by a planner, under every adapter (TAM, Table 1)",
            example="retorque bench push --adapters default direct --json push.json",
            module="bench.policy_tasks",
            settings="PolicyTaskSettings",
            function="push",
        ),
        "flip": Verb(
            summary="a cube flipped onto its next face, under every adapter (TAM, Table 1)",
            example="retorque bench flip --adapters default direct --json flip.json",
            module="bench.policy_tasks",
            settings="PolicyTaskSettings",
            function="flip",
        ),
        "ball": Verb(
            summary="a ball balanced on a plate from goal to goal, under every adapter (TAM, Table 1)",
            example="retorque bench ball --adapters default direct --json ball.json",
            module="bench.policy_tasks",
            settings="PolicyTaskSettings",
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
            module="bench.models.identification",
        ),
        "inverse-dynamics": Verb(
            summary="inverse-dynamics models, end to end and in two steps (hybrid models, Table II)",
            example="retorque bench inverse-dynamics --scale 0.1 --json inverse-dynamics.json",
            module="bench.models.inverse_dynamics",
        ),
        "impedance-tracking": Verb(
            summary="the models as feed-forward at soft, medium and stiff gains (hybrid models, Table III)",
            example="retorque bench impedance-tracking --scale 0.1 --json impedance-tracking.json",
            module="bench.models.impedance_tracking",
        ),
        "joint-learning": Verb(
            summary="rigid bodies learnt alone and beside an LSTM, epoch by epoch (hybrid models, Fig. 2)",
            example="retorque bench joint-learning --trials 10 --picture joint-learning.png --json joint-learning.json",
            module="bench.models.joint_learning",
        ),
        "real-logs": Verb(
            summary="identification from recordings of real robots",
            example="retorque bench real-logs --json real-logs.json",
            module="bench.models.real_logs",
        ),
        "damaged-logs": Verb(
            summary="whether logs damaged on purpose are refused, and for the right reason",
            example="retorque bench damaged-logs --data ../shared/data --json damaged-logs.json",
            module="bench.models.damaged_logs",
        ),
        "payload": Verb(
            summary="whether a payload's error bars hold where drive gains are wrong",
            example="retorque bench payload --arms 50 --json payload.json",
            module="bench.models.payload_errors",
        ),
        "mpc-planner": Verb(
            summary="which parameters the planner copes with, known and constant (MPC and identification, Table I)",
            example="retorque bench mpc-planner --tasks cartpole --json planner.json",
            module="bench.mpc.mpc_planner",
        ),
        "mpc": Verb(
            summary="time to objective of every policy while the robot changes (MPC and identification, Table II)",
            example="retorque bench mpc --tasks cartpole --policies information paper --json mpc.json",
            module="bench.mpc.mpc_bench",
        ),
        "mpc-start-time": Verb(
            summary="when plans should begin: adaptive, the paper's rule, fixed (MPC and identification, IV-E)",
            example="retorque bench mpc-start-time --json start-time.json",
            module="bench.mpc.mpc_start_time",
        ),
        "mpc-exploration": Verb(
            summary="whether exciting the unknown pays (MPC and identification, IV-D)",
            example="retorque bench mpc-exploration --json exploration.json",
            module="bench.mpc.mpc_exploration",
        ),
        "mpc-adapter": Verb(
            summary="a Panda under MPC with an adapter beneath: should the plan know the robot, the adapter, or both",
            example="retorque bench mpc-adapter --adapters default --json mpc-adapter.json",
            module="bench.mpc.mpc_adapter",
        ),
        "mpc-windows": Verb(
            summary="fits of windows against the Cramér-Rao bound, delay of detection, false alarms",
            example="retorque bench mpc-windows --json mpc-windows.json",
            module="bench.mpc.mpc_windows",
        ),
        "mpc-speed": Verb(
            summary="an iteration of iLQR beside Crocoddyl's, and one of identification",
            example="retorque bench mpc-speed --json mpc-speed.json",
            module="bench.mpc.mpc_speed",
        ),
        "wrench": Verb(
            summary="wrenches from motor signals against the true ones (minimalist compliance, Figure 3)",
            example="retorque bench wrench --robots arx_x5 --trials 4 --json wrench.json",
            module="bench.comply.wrench",
        ),
        "compliance": Verb(
            summary="a heart on a misplaced board, free-standing (minimalist compliance, Table I)",
            example="retorque bench compliance --trials 2 --methods retorque position --json compliance.json",
            module="bench.comply.board_drawing",
        ),
        "rotate": Verb(
            summary="objects turned in a hand, a ball turned on the floor (minimalist compliance, IV-D, IV-E)",
            example="retorque bench rotate --trials 4 --methods retorque position --json rotate.json",
            module="bench.comply.object_rotation",
        ),
        "imitation": Verb(
            summary="cloned x_des through compliance against cloned x_ref by position (minimalist compliance, IV-D)",
            example="retorque bench imitation --trials 20 --json imitation.json",
            module="bench.comply.imitation",
        ),
        "comply-speed": Verb(
            summary="time of one compliance step, from motor reports to joint targets",
            example="retorque bench comply-speed --robots arx_x5 --ticks 500",
            module="bench.comply.comply_speed",
        ),
        "speed": Verb(
            summary="time of each hot path, and simulation steps a second",
            example="retorque bench speed --json speed.json",
            module="bench.speed",
        ),
    },
)
