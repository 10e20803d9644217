"""Train a classifier of handwritten digits, its gradients accumulated in place.

Each step splits its batch into microbatches. An outer ``scan`` iterates over them and an inner one
over the hidden layers; the backward pass of each microbatch accumulates into one gradient reference
for each parameter. Parameters and momenta are references too, which the compiled step updates in
place. At the end the example prints the step with its effects, the discharged program, and the
memory that accumulating in place saves compared with returning gradients as values.

Run it with ``make demo``, or ``python examples/digits.py --help``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import effax
import effax.numpy as jnp
from effax.ir import pretty
from effax.passes import dce, unwrap
from effax.transforms import discharge

WIDTH = 64
CLASSES = 10
Params = dict[str, Any]


class Settings(NamedTuple):
    """Hyperparameters of a run."""

    layers: int = 3
    microbatches: int = 8
    microbatch: int = 32
    epochs: int = 40
    rate: float = 0.1
    momentum: float = 0.9
    seed: int = 0


class Data(NamedTuple):
    """Images as rows of 64 floats in [0, 1], and their digits."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load() -> Data:
    """Load scikit-learn's 1,797 handwritten digits, a quarter of them for testing."""
    digits = load_digits()
    x = (digits.data / 16.0).astype(np.float32)
    parts = train_test_split(
        x, digits.target.astype(np.int32), test_size=0.25, random_state=0, stratify=digits.target
    )
    return Data(parts[0], parts[2], parts[1], parts[3])


def init_params(settings: Settings) -> Params:
    """Initialise hidden layers, stacked along a leading axis for ``scan``, and an output layer."""
    hidden, out = effax.random.split(effax.random.PRNGKey(settings.seed))
    scale = (2.0 / WIDTH) ** 0.5
    return {
        "hidden": {
            "w": scale * effax.random.normal(hidden, (settings.layers, WIDTH, WIDTH)),
            "b": jnp.zeros((settings.layers, WIDTH)),
        },
        "out": {
            "w": scale * effax.random.normal(out, (WIDTH, CLASSES)),
            "b": jnp.zeros(CLASSES),
        },
    }


def logits(params: Params, x: effax.Array) -> effax.Array:
    """Apply the hidden layers by a scan, then the output layer."""

    def layer(h: effax.Array, p: Params) -> tuple[effax.Array, None]:
        return effax.nn.relu(h @ p["w"] + p["b"]), None

    h, _ = effax.lax.scan(layer, x, params["hidden"])
    out: effax.Array = h @ params["out"]["w"] + params["out"]["b"]
    return out


def loss(params: Params, x: effax.Array, y: effax.Array) -> effax.Array:
    """Return the mean cross entropy of a microbatch."""
    picked = effax.nn.one_hot(y, CLASSES) * effax.nn.log_softmax(logits(params, x))
    return -jnp.sum(picked) / x.shape[0]


def gradients_in_place(
    params: Params, xs: effax.Array, ys: effax.Array
) -> tuple[Params, effax.Array]:
    """Return gradients of the mean loss, accumulated in place by all microbatches."""
    refs = effax.tree.map(lambda p: effax.new_ref(jnp.zeros_like(p)), params)

    def microbatch(_: None, xy: tuple[effax.Array, effax.Array]) -> tuple[None, effax.Array]:
        value, pullback = effax.vjp(lambda p: loss(p, *xy), params)
        pullback.with_refs(refs)(jnp.ones_like(value) / len(xs))
        return None, value

    _, losses = effax.lax.scan(microbatch, None, (xs, ys))
    return effax.tree.map(effax.freeze, refs), jnp.mean(losses)


def gradients_as_values(
    params: Params, xs: effax.Array, ys: effax.Array
) -> tuple[Params, effax.Array]:
    """Return the same gradients, as values of each microbatch that are averaged at the end."""

    def microbatch(
        _: None, xy: tuple[effax.Array, effax.Array]
    ) -> tuple[None, tuple[effax.Array, Params]]:
        return None, effax.value_and_grad(loss)(params, *xy)

    _, (losses, grads) = effax.lax.scan(microbatch, None, (xs, ys))
    return effax.tree.map(lambda g: jnp.mean(g, 0), grads), jnp.mean(losses)


def make_step(settings: Settings) -> Callable[..., effax.Array]:
    """Return the training step, which updates references to parameters and momenta in place."""

    def step(param_refs: Params, momenta: Params, xs: effax.Array, ys: effax.Array) -> effax.Array:
        params = effax.tree.map(lambda r: r[...], param_refs)
        grads, value = gradients_in_place(params, xs, ys)

        def update(param: effax.Ref, velocity: effax.Ref, grad: effax.Array) -> None:
            velocity[...] = settings.momentum * velocity[...] - settings.rate * grad
            param[...] += velocity[...]

        effax.tree.map(update, param_refs, momenta, grads)
        return value

    return step


def batches(data: Data, settings: Settings, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Return one epoch of shuffled batches, each split into microbatches."""
    size = settings.microbatches * settings.microbatch
    order = rng.permutation(len(data.train_x))
    picked = [order[i : i + size] for i in range(0, len(order) - size + 1, size)]
    shape = (settings.microbatches, settings.microbatch)
    return [
        (data.train_x[p].reshape(*shape, WIDTH), data.train_y[p].reshape(shape)) for p in picked
    ]


def accuracy(params: Params, x: np.ndarray, y: np.ndarray) -> float:
    """Return the fraction of images that are classified correctly."""
    found = jnp.argmax(effax.jit(logits)(params, jnp.asarray(x)), -1)
    return float(jnp.mean(found == jnp.asarray(y)))


def train(data: Data, settings: Settings) -> tuple[Params, list[float], Any]:
    """Return the trained parameters as references, the loss of each step, and the step itself."""
    params = init_params(settings)
    param_refs = effax.tree.map(effax.new_ref, params)
    momenta = effax.tree.map(lambda p: effax.new_ref(jnp.zeros_like(p)), params)
    step = effax.jit(make_step(settings))
    rng = np.random.default_rng(settings.seed)
    losses: list[float] = []
    bar = tqdm(range(settings.epochs), desc="training", unit="epoch", file=sys.stdout)
    for _ in bar:
        for xs, ys in batches(data, settings, rng):
            losses.append(float(step(param_refs, momenta, xs, ys)))
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return param_refs, losses, (step, momenta)


def show_programs(step: Any, *args: Any) -> None:
    """Print the step with its effect row, and the same program without references."""
    jaxpr = step.trace(*args).jaxpr.jaxpr
    print("\nThe step, with its effects on references:\n")
    print(pretty(jaxpr, effects=True))
    print("\nThe step after `discharge`, without references and effects:\n")
    print(unwrap(discharge(unwrap(dce(jaxpr)))).jaxpr)


def compare(params: Params, xs: effax.Array, ys: effax.Array, repetitions: int) -> None:
    """Print memory and time of both ways to accumulate, and compare their gradients."""
    rows = {}
    results = {}
    for name, fun in (("in place", gradients_in_place), ("as values", gradients_as_values)):
        compiled = effax.jit(fun).lower(params, xs, ys).compile()
        stats = compiled.memory_analysis()
        results[name] = compiled(params, xs, ys)[0]
        times = []
        for _ in range(repetitions):
            start = time.perf_counter()
            effax.block_until_ready(compiled(params, xs, ys))
            times.append(time.perf_counter() - start)
        rows[name] = (stats.peak_bytes, stats.temp_bytes, min(times))
    gap = max(
        float(jnp.max(jnp.abs(a - b)))
        for a, b in zip(*map(effax.tree.leaves, results.values()), strict=True)
    )
    print("\nGradients of one batch, accumulated in place and returned as values:\n")
    print(f"{'':12}{'peak memory':>14}{'temporaries':>14}{'time':>12}")
    for name, (peak, temp, seconds) in rows.items():
        print(f"{name:12}{peak / 1e3:>11.1f} kB{temp / 1e3:>11.1f} kB{seconds * 1e3:>9.2f} ms")
    print(f"\nThe largest difference between the two gradients is {gap:.1e}.")
    if gap > 1e-4:
        raise SystemExit("the two gradients differ")


def plot(losses: list[float], path: Path) -> None:
    """Write the loss curve."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(losses)
    axes.set(xlabel="step", ylabel="mean cross entropy", yscale="log", title="Handwritten digits")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"The loss curve is in {path}.")


def main() -> None:
    """Train, show, compare, plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--epochs", type=int, default=Settings().epochs)
    parser.add_argument("--out", type=Path, default=Path("out/digits-loss.png"))
    args = parser.parse_args()
    settings = Settings(epochs=args.epochs)
    data = load()
    param_refs, losses, (step, momenta) = train(data, settings)
    params = effax.tree.map(lambda r: r[...], param_refs)
    score = accuracy(params, data.test_x, data.test_y)
    xs, ys = batches(data, settings, np.random.default_rng(1))[0]
    show_programs(step, param_refs, momenta, xs, ys)
    compare(params, jnp.asarray(xs), jnp.asarray(ys), repetitions=20)
    plot(losses, args.out)
    print(f"Test accuracy: {score:.4f} on {len(data.test_y)} images.")
    if score < 0.95:
        raise SystemExit("expected a test accuracy of at least 0.95")


if __name__ == "__main__":
    main()
