"""Train a classifier of handwritten digits on many devices, of one process or of several.

Three models, one source. Data parallel: parameters are on every device, and each device has a part
of the batch. Tensor parallel: the hidden layer is divided too. Divided embedding: each pixel with
its brightness is a row of a table, whose rows are divided over the devices; a step updates the rows
of its images in place. Parameters are references, which keep their placement.

Run it with ``make distributed``, which is the same as these commands::

    JAX_NUM_CPU_DEVICES=8 python examples/distributed.py
    python -m effax.launch -n 4 --devices 2 examples/distributed.py

With ``--checkpoints FOLDER``, each step is saved, and a run that starts again continues from the
last one: ``python -m effax.launch -n 4 --restarts 3 examples/distributed.py --checkpoints out``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import effax
import effax.numpy as jnp
from effax.checkpoint import CheckpointManager
from effax.sharding import Mesh, NamedSharding, P

WIDTH, HIDDEN, CLASSES, LEVELS, TEST = 64, 128, 10, 17, 360
Refs = dict[str, effax.Ref]
Arrays = dict[str, effax.Array]


class Model(NamedTuple):
    """A way to divide a model: the specification of each parameter, and of a batch."""

    specs: dict[str, P]
    batch: P
    logits: Callable[[Any, effax.Array], effax.Array]
    rate: float


def perceptron(params: Any, x: effax.Array) -> effax.Array:
    """Return the logits of a hidden layer over pixels in [0, 1]."""
    h = effax.nn.relu(x / 16.0 @ params["w1"] + params["b1"])
    return jnp.asarray(h @ params["w2"] + params["b2"])


def embedded(params: Any, x: effax.Array) -> effax.Array:
    """Return the logits of the mean of the rows of all pixels."""
    rows = jnp.arange(WIDTH) * LEVELS + x.astype("int32")
    h = effax.nn.relu(params["table"][rows].sum(1) / 8.0)
    return jnp.asarray(h @ params["w2"] + params["b2"])


MODELS = {
    "data parallel": Model(
        {"w1": P(), "b1": P(), "w2": P(), "b2": P()}, P(("data", "model")), perceptron, 0.5
    ),
    "tensor parallel": Model(
        {"w1": P(None, "model"), "b1": P("model"), "w2": P("model"), "b2": P()},
        P("data"),
        perceptron,
        0.5,
    ),
    "divided embedding": Model(
        {"table": P(("data", "model")), "w2": P(), "b2": P()}, P(("data", "model")), embedded, 4.0
    ),
}


def read(params: Refs) -> Arrays:
    """Return the contents of the parameters."""
    return {name: ref[...] for name, ref in params.items()}


def initial(specs: dict[str, P], mesh: Mesh) -> Refs:
    """Return the parameters as references; each device has its part only."""
    rng = np.random.default_rng(0)
    shapes = {
        "w1": (WIDTH, HIDDEN),
        "b1": (HIDDEN,),
        "table": (WIDTH * LEVELS, HIDDEN),
        "w2": (HIDDEN, CLASSES),
        "b2": (CLASSES,),
    }
    made = {}
    for name, spec in specs.items():
        scale = 0.0 if name.startswith("b") else 0.1
        value = (scale * rng.normal(size=shapes[name])).astype(np.float32)
        made[name] = effax.new_ref(divided(value, NamedSharding(mesh, spec)))
    return made


def divided(value: np.ndarray, sharding: NamedSharding) -> effax.Array:
    """Return an array of which this process makes the parts of its devices."""
    return effax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def make_step(model: Model, params: Refs) -> Callable[..., effax.Array]:
    """Return the compiled step: it updates the references in place, and returns the loss."""

    def loss(values: Arrays, x: effax.Array, y: effax.Array) -> effax.Array:
        chosen = effax.nn.one_hot(y, CLASSES) * effax.nn.log_softmax(model.logits(values, x))
        return -jnp.sum(chosen) / x.shape[0]

    def step(x: effax.Array, y: effax.Array) -> effax.Array:
        value, pullback = effax.vjp(lambda values: loss(values, x, y), read(params))
        # Gradient descent: the cotangents of -rate are accumulated into the parameters in place,
        # those of rows of a table into these rows.
        pullback.with_refs(params)(jnp.asarray(-model.rate))
        return value

    return effax.jit(step)


def batches(first: int, steps: int, size: int, x: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each step and the rows of its batch, equal in every process and run."""
    for number in range(first, steps):
        yield number, np.random.default_rng(number).integers(len(x), size=size)


def train(name: str, mesh: Mesh, steps: int, size: int, folder: Path | None) -> tuple[float, float]:
    """Train a model; return the last loss, and the fraction of test images classified rightly."""
    model = MODELS[name]
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    x, y = digits.data.astype(np.float32)[order], digits.target.astype(np.int32)[order]
    params = initial(model.specs, mesh)
    step, rows = make_step(model, params), NamedSharding(mesh, model.batch)
    manager = None if folder is None else CheckpointManager(folder / name.replace(" ", "-"), keep=2)
    first, loss = 0, jnp.zeros(())
    if manager is not None and manager.latest_step() is not None:
        first = manager.restore(like={"params": params, "step": 0})["step"]
    for number, chosen in batches(first, steps, size, x[TEST:]):
        loss = step(divided(x[TEST:][chosen], rows), divided(y[TEST:][chosen], rows))
        report(f"{name}: step {number} loss {float(loss)!r}")
        if manager is not None:
            manager.save(number + 1, {"params": params, "step": number + 1}, wait=False)
    if manager is not None:
        manager.wait_until_finished()
    return float(loss), accuracy(model, params, divided(x[:TEST], rows), y[:TEST], mesh)


def accuracy(model: Model, params: Refs, x: effax.Array, y: np.ndarray, mesh: Mesh) -> float:
    """Return the fraction of images that are classified correctly."""

    def found(x: effax.Array) -> effax.Array:
        return jnp.argmax(model.logits(read(params), x), -1)

    everywhere = NamedSharding(mesh, P())
    return float(np.mean(np.asarray(effax.jit(found, out_shardings=everywhere)(x)) == y))


def report(text: str) -> None:
    """Print a line in the first process."""
    if effax.process_index() == 0:
        print(text, flush=True)


def main() -> None:
    """Train the three models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=240)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--checkpoints", type=Path, default=None)
    args = parser.parse_args()
    count = effax.device_count()
    mesh = effax.make_mesh((max(count // 2, 1), min(count, 2)), ("data", "model"))
    report(f"{count} devices, of {effax.process_count()} processes")
    for name in args.models:
        loss, score = train(name, mesh, args.steps, args.batch, args.checkpoints)
        report(f"{name}: {loss:.4f} is the last loss, {score:.4f} the test accuracy")
        if args.steps >= 60 and score < 0.9:
            raise SystemExit("expected a test accuracy of at least 0.9")


if __name__ == "__main__":
    main()
