"""Gymnasium environments of the tasks, on robots with hidden dynamics, under any adapter."""

from retorque.envs.task_env import TaskEnv

__all__ = ["TaskEnv"]
