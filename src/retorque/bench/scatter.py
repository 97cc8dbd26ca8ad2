"""Latents in the plane: a small t-SNE, and the picture of Figure F.1."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from retorque.work.array import Array
from retorque.work.files import write_whole


def tsne(points: Array, seed: int, *, perplexity: float = 20.0, steps: int = 400) -> Array:
    """Points (count, size) in the plane (count, 2), neighbours kept (t-SNE with plain momentum)."""
    count = len(points)
    perplexity = min(perplexity, (count - 1) / 3.0)
    squared = np.sum((points[:, None] - points[None]) ** 2, axis=-1)
    near = _neighbours(squared, perplexity)
    near = np.maximum((near + near.T) / (2.0 * count), 1e-12)
    rng = np.random.default_rng(seed)
    plane = 1e-2 * rng.standard_normal((count, 2))
    speed = np.zeros_like(plane)
    for step in range(steps):
        apart = plane[:, None] - plane[None]
        heavy = 1.0 / (1.0 + np.sum(apart**2, axis=-1))
        np.fill_diagonal(heavy, 0.0)
        eager = 8.0 if step < 100 else 1.0  # exaggerated at first, so that clusters form
        force = (eager * near - heavy / heavy.sum()) * heavy
        gradient = 4.0 * np.einsum("ij,ijk->ik", force, apart)
        speed = (0.5 if step < 100 else 0.8) * speed - 0.2 * count * gradient
        plane = plane + np.clip(speed, -5.0, 5.0)
    return plane - plane.mean(axis=0)


def _neighbours(squared: Array, perplexity: float) -> Array:
    """Row-wise Gaussian affinities whose entropy is that of `perplexity` neighbours."""
    count = len(squared)
    found = np.zeros_like(squared)
    for row in range(count):
        low, high = 0.0, np.inf
        precision = 1.0 / max(float(np.mean(squared[row])), 1e-12)
        for _ in range(50):
            weight = np.exp(-precision * (squared[row] - np.partition(squared[row], 1)[1]))
            weight[row] = 0.0
            share = weight / weight.sum()
            entropy = -np.sum(share[share > 0.0] * np.log(share[share > 0.0]))
            if entropy > np.log(perplexity):
                low = precision
                precision = precision * 2.0 if np.isinf(high) else 0.5 * (low + high)
            else:
                high = precision
                precision = 0.5 * (low + high)
        found[row] = share
    return found


def scatter_picture(latents: Array, path: Path, seed: int) -> None:
    """Latents (conditions, trajectories, size) in the plane, coloured by motion and by condition (Figure F.1)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    conditions, trajectories, _ = latents.shape
    plane = tsne(latents.reshape(conditions * trajectories, -1), seed)
    condition, motion = np.divmod(np.arange(len(plane)), trajectories)
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.5))
    for axis, colour, title in zip(axes, (motion, condition), ("motion", "physical condition"), strict=True):
        axis.scatter(plane[:, 0], plane[:, 1], c=colour, cmap="turbo", s=10)
        axis.set_title(f"coloured by {title}")
        axis.set_xticks([])
        axis.set_yticks([])
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120, bbox_inches="tight")
    pyplot.close(figure)
    write_whole(path, content.getvalue())
