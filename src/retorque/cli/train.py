"""`retorque train`: makes weights."""

from __future__ import annotations

from retorque.cli.verb import Verb, VerbGroup

TRAININGS = VerbGroup(
    summary="make weights",
    commands={
        "tam": Verb(
            summary="data, pretraining and fine-tuning of the torque adaptation module; resumes where it stopped",
            example="retorque train tam --robots panda --preset small --hours 2 --out tam-panda",
            module="adapt.tam.training.train",
            settings="TamTraining",
            function="train",
            more=(
                "retorque train tam --robots z1 --finetune tam/weights.safetensors --hours 0.2 --out tam-z1",
                "retorque train tam --cluster auto --workers 16 --out tam",
                "torchrun --standalone --nproc-per-node 2 -m retorque train tam --out tam",
            ),
        ),
        "tam-recursive": Verb(
            summary="the network that reads what the recursive estimator leaves unexplained; resumes where it stopped",
            example="retorque train tam-recursive --workers 2 --out tam-recursive",
            module="adapt.tam_recursive.training.train",
            settings="ResidualTraining",
            function="train",
            more=(
                "retorque train tam-recursive --loop default --start tam-recursive/weights.safetensors --out default",
            ),
        ),
        "flip": Verb(
            summary="a flip policy (ACT) from scripted demonstrations, kept as a LeRobot data set; resumes",
            example="retorque train flip --demonstrations 60 --out flip-act",
            module="tasks.flip.training.train_act",
            settings="FlipTraining",
            function="train",
        ),
        "push": Verb(
            summary="box pushing: the planner's forward model, a policy by PPO, or its student by DAgger; resumes",
            example="retorque train push --pushes 3840 --out push-model",
            module="tasks.push.training.train_push",
            settings="PushTeacher",
            function="train",
            more=(
                "retorque train push --method ppo --steps 20000 --out push-ppo",
                "retorque train push --method student --out push-student",
            ),
        ),
        "rma": Verb(
            summary="a pushing policy that adapts by itself (RMA), from one made on the ideal robot; resumes",
            example="retorque train rma --steps 20000 --out push-rma",
            module="tasks.push.training.train_rma",
            settings="RmaTraining",
            function="train",
        ),
        "diffusion": Verb(
            summary="a diffusion policy that scoops, cloned from demonstrations with compliance; resumes",
            example="retorque train diffusion --action x_des --out scoop-diffusion",
            module="tasks.scoop.training.train_diffusion",
            settings="DiffusionTraining",
            function="train",
        ),
        "force": Verb(
            summary="UniFP and FACET, rivals of compliance control, by PPO within the paper's ranges; resumes",
            example="retorque train force --method facet --out facet",
            module="tasks.force_policies.training.train_force",
            settings="ForceTraining",
            function="train",
        ),
        "up-osi": Verb(
            summary="UP-OSI, the rival of MPC: a policy that is told the parameters, and their identification; resumes",
            example="retorque train up-osi --task cartpole --out up-osi",
            module="tasks.mpc.training.train_up_osi",
            settings="UpOsiTraining",
            function="train",
        ),
    },
)
