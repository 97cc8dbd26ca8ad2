"""DiffBary, DiffNEA and DeLaN: gradients, feasibility, and agreement with the classical estimates."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.identify.methods.sdp import SemidefiniteProgram
from retorque.identify.regression.layout import Layout
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.inertia import pseudo_inertia, robot_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

torch = pytest.importorskip("torch")

from retorque.identify.methods.delan import DeLaN, DeLaNSettings, fit_delan, predict_delan  # noqa: E402
from retorque.identify.methods.differentiable import DiffBary, DiffNEA  # noqa: E402
from retorque.identify.methods.newton_euler import NewtonEuler  # noqa: E402
from retorque.identify.methods.virtual import (  # noqa: E402
    barycentric,
    barycentric_virtual,
    newton_euler,
    newton_euler_virtual,
)

MAPS = {"diffbary": (barycentric, barycentric_virtual), "diffnea": (newton_euler, newton_euler_virtual)}


@pytest.fixture(scope="module")
def panda() -> Robot:
    return Robot.load("panda")


def _motion(panda: Robot, samples: int, seed: int, noise: float = 0.0) -> Motion:
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-2, 2, (samples, 7)), rng.uniform(-1, 1, (samples, 7)), rng.uniform(-3, 3, (samples, 7))
    truth = robot_inertia(panda) * rng.uniform(0.9, 1.1, (7, 1))
    torque = RigidBody(panda, truth).inverse_dynamics(q, qd, qdd) + 0.7 * np.clip(qd / 0.02, -1, 1)
    return Motion.of(q, qd, qdd, torque + noise * rng.standard_normal(q.shape))


@pytest.mark.parametrize("name", ["panda", "z1", "rby1"])
def test_newton_euler_is_the_rigid_body(name: str) -> None:
    robot = Robot.load(name)
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.standard_normal((3, 20, robot.n))
    found = NewtonEuler(robot)(*(torch.tensor(x) for x in (robot_inertia(robot), q, qd, qdd))).numpy()
    wanted = RigidBody(robot, armature=np.zeros(robot.n)).inverse_dynamics(q, qd, qdd)
    assert np.allclose(found, wanted, atol=1e-9 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("name", list(MAPS))
def test_gradients_against_finite_differences(panda: Robot, name: str) -> None:
    """d torque / d virtual parameters through the recursion, all links."""
    to_ten, to_virtual = MAPS[name]
    rng = np.random.default_rng(1)
    motion = [torch.tensor(x) for x in rng.standard_normal((3, 4, 7))]
    virtual = torch.tensor(to_virtual(robot_inertia(panda)), requires_grad=True)
    tree, weight = NewtonEuler(panda), torch.tensor(rng.standard_normal((4, 7)))

    def loss(v: torch.Tensor) -> torch.Tensor:
        return torch.sum(weight * tree(to_ten(v), *motion))

    loss(virtual).backward()
    step = 1e-6
    numeric = np.zeros((7, 10))
    for index in np.ndindex(7, 10):
        shift = torch.zeros(7, 10, dtype=torch.float64)
        shift[index] = step
        with torch.no_grad():
            numeric[index] = float(loss(virtual + shift) - loss(virtual - shift)) / (2 * step)
    assert virtual.grad is not None
    assert np.allclose(virtual.grad.numpy(), numeric, atol=1e-6 * np.max(np.abs(numeric)))


@pytest.mark.parametrize("name", list(MAPS))
def test_any_virtual_parameters_are_physical(name: str) -> None:
    virtual = torch.tensor(np.random.default_rng(2).standard_normal((500, 10)))
    assert np.all(np.linalg.eigvalsh(pseudo_inertia(MAPS[name][0](virtual).numpy())) > 0.0)


@pytest.mark.parametrize("name", list(MAPS))
def test_virtual_parameters_round_trip(panda: Robot, name: str) -> None:
    to_ten, to_virtual = MAPS[name]
    inertial = robot_inertia(panda)
    assert np.allclose(to_ten(torch.tensor(to_virtual(inertial))).numpy(), inertial, atol=1e-9)


@pytest.mark.parametrize("kind", [DiffBary, DiffNEA])
def test_jacobian_of_the_regression(panda: Robot, kind: type) -> None:
    method, layout = kind(), Layout(panda, preset("sign"))
    virtual = method.start(layout)
    parameters = method.parameters_of(layout)
    step = 1e-6
    numeric = np.stack(
        [
            (parameters(torch.from_numpy(virtual + e)) - parameters(torch.from_numpy(virtual - e))).numpy() / (2 * step)
            for e in step * np.eye(layout.size)
        ],
        axis=1,
    )
    assert np.allclose(method.jacobian(layout, virtual), numeric, atol=1e-8)


@pytest.mark.parametrize(("kind", "seed"), [(DiffBary, None), (DiffBary, 1), (DiffNEA, None)])
def test_reaches_the_semidefinite_program(panda: Robot, kind: type, seed: int | None) -> None:
    data = _motion(panda, 300, seed=3, noise=0.3)
    wanted = SemidefiniteProgram().fit(data, panda, preset("sign"))
    found = kind(seed=seed).fit(data, panda, preset("sign"))
    assert found.physical
    loss = [float(np.mean(np.square(x.predict(data.q, data.qd, data.qdd) - data.torque))) for x in (wanted, found)]
    assert loss[1] <= 1.02 * loss[0]


def test_delan_torque_is_euler_lagrange() -> None:
    """The hand-written derivatives against PyTorch's own of H(q) and V(q)."""
    torch.manual_seed(0)
    model = DeLaN(3, np.zeros(3), np.array([0.7, 1.1, 2.0]), np.ones(3), width=16).double()
    q, qd, qdd = (torch.randn(3, dtype=torch.float64) for _ in range(3))

    def parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        soft = torch.nn.functional.softplus
        out = model.last(soft(model.second(soft(model.first(x / model.deviation)))))
        root = torch.diag(soft(out[:3]) + 1e-3)
        rows, columns = torch.tril_indices(3, 3, -1)
        root = root.index_put((rows, columns), out[3:-1])
        return root @ root.T, out[-1]

    mass = parts(q)[0]
    slope = torch.autograd.functional.jacobian(lambda x: parts(x)[0], q)
    pull = torch.autograd.functional.jacobian(lambda x: parts(x)[1], q)
    wanted = mass @ qdd + torch.einsum("ijk,k,j->i", slope, qd, qd)
    wanted = wanted - 0.5 * torch.einsum("ijk,i,j->k", slope, qd, qd) + pull
    assert torch.allclose(model(q[None], qd[None], qdd[None])[0], wanted, atol=1e-10)


def test_delan_learns_and_has_the_papers_size(panda: Robot) -> None:
    data = _motion(panda, 400, seed=4)
    scale = np.ptp(data.torque, axis=0)
    losses: list[float] = []
    model = fit_delan(data, scale, DeLaNSettings(epochs=30, batch=50), lambda epoch, loss: losses.append(loss))
    assert sum(p.numel() for p in model.parameters()) == 47629
    assert losses[-1] < 0.3 * losses[0]
    error = np.mean(np.square((predict_delan(model, data) - data.torque) / scale))
    assert error < 2.0 * min(losses)
