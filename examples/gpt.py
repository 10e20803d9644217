"""Train a small GPT on this project's documentation, byte by byte, its state in references.

Parameters and Adam's moments are references in a dict, which the compiled step updates in place.
The example then looks at its step as a program: its signature and effects, its cost, its picture, a
pipeline of passes, and the first nan of a step with a planted fault. At the end it samples a text.

Run it with ``make gpt``, or ``python examples/gpt.py --help``.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

import effax
import effax.numpy as jnp
from effax import debug, lax, show
from effax.ir import Cost, Jaxpr
from effax.passes import cse, dce, fixpoint, fold, forward_stores, simplify

ROOT = Path(__file__).resolve().parents[1]
BYTES = 256

Weights = dict[str, dict[str, effax.Array]]
Refs = dict[str, dict[str, effax.Ref]]


class State(TypedDict):
    """The state of training: parameters, Adam's moments, the number of steps."""

    params: Refs
    m: Refs
    v: Refs
    t: effax.Ref


Step = Callable[[State, effax.Array], effax.Array]
"""A training step: it updates the state, and returns the loss of a batch."""


class Settings(NamedTuple):
    """Hyperparameters of a run."""

    layers: int = 4
    heads: int = 4
    width: int = 64
    context: int = 64
    batch: int = 16
    steps: int = 500
    rate: float = 3e-3
    epsilon: float = 1e-6
    seed: int = 0


def corpus() -> np.ndarray:
    """Return the bytes of the documentation and the licence."""
    files = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "LICENSE"]
    return np.frombuffer(b"\n".join([file.read_bytes() for file in files]), np.uint8)


def unigram_entropy(text: np.ndarray) -> float:
    """Return the entropy of single bytes in nats: the loss of a model without a context."""
    counts = np.bincount(text, minlength=BYTES)
    p = counts[counts > 0] / len(text)
    return float(-(p * np.log(p)).sum())


def init_params(s: Settings) -> Weights:
    """Initialise the parameters: random matrices, scales of one."""
    keys = iter(effax.random.split(effax.random.PRNGKey(s.seed), 4 * s.layers + 3))

    def matrix(rows: int, columns: int, scale: float) -> effax.Array:
        return scale * effax.random.normal(next(keys), (rows, columns))

    thin, deep = s.width**-0.5, (4 * s.width) ** -0.5
    params: Weights = {
        "embed": {
            "token": matrix(BYTES, s.width, 0.1),
            "place": matrix(s.context, s.width, 0.1),
        },
        "head": {"norm": jnp.ones(s.width), "w": matrix(s.width, BYTES, thin)},
    }
    for k in range(s.layers):
        params[f"block{k}"] = {
            "norm1": jnp.ones(s.width),
            "qkv": matrix(s.width, 3 * s.width, thin),
            "out": matrix(s.width, s.width, thin / s.layers),
            "norm2": jnp.ones(s.width),
            "up": matrix(s.width, 4 * s.width, thin),
            "down": matrix(4 * s.width, s.width, deep / s.layers),
        }
    return params


def new_state(s: Settings) -> State:
    """Return references to initial parameters, to moments of zero, and to the number of steps."""
    params = init_params(s)

    def zeros() -> Refs:
        made: Refs = effax.tree.map(lambda p: effax.new_ref(jnp.zeros_like(p)), params)
        return made

    return {
        "params": effax.tree.map(effax.new_ref, params),
        "m": zeros(),
        "v": zeros(),
        "t": effax.new_ref(jnp.zeros((), "int32")),
    }


def norm(x: effax.Array, scale: effax.Array, epsilon: float) -> effax.Array:
    """Divide by the root of the mean square of the last axis, and scale."""
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * scale


def attention(x: effax.Array, qkv: effax.Array, out: effax.Array, heads: int) -> effax.Array:
    """Apply causal self-attention to a sequence: ``f32[length, width]``."""
    length, width = x.shape
    q, k, v = jnp.split((x @ qkv).reshape(length, 3 * heads, width // heads), 3, axis=1)
    scores = jnp.einsum("qhd,khd->hqk", q, k) * (width // heads) ** -0.5
    causal = jnp.tri(length, dtype=bool)
    weights = effax.nn.softmax(jnp.where(causal, scores, -1e9))
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(length, width) @ out


def block(x: effax.Array, p: dict[str, effax.Array], s: Settings) -> effax.Array:
    """Apply one layer: attention and a perceptron, each around a residual connection."""
    x = x + attention(norm(x, p["norm1"], s.epsilon), p["qkv"], p["out"], s.heads)
    return x + effax.nn.gelu(norm(x, p["norm2"], s.epsilon) @ p["up"]) @ p["down"]


def logits(params: Weights, tokens: effax.Array, s: Settings) -> effax.Array:
    """Return the logits of the next byte at each place: ``f32[length, 256]``."""
    with effax.named_scope("embed"):
        x = params["embed"]["token"][tokens] + params["embed"]["place"][: len(tokens)]
    for k in range(s.layers):
        with effax.named_scope(f"block{k}"):
            x = block(x, params[f"block{k}"], s)
    with effax.named_scope("head"):
        return norm(x, params["head"]["norm"], s.epsilon) @ params["head"]["w"]


def loss(params: Weights, batch: effax.Array, s: Settings) -> effax.Array:
    """Return the mean cross entropy of the next byte: ``batch`` is ``i32[batch, context + 1]``."""
    scores = effax.vmap(lambda tokens: logits(params, tokens, s))(batch[:, :-1])
    chosen = jnp.take_along_axis(effax.nn.log_softmax(scores), batch[:, 1:, None], axis=-1)
    return -jnp.mean(chosen)


def make_step(s: Settings) -> Step:
    """Return the training step, which updates the state in place by Adam."""

    def step(state: State, batch: effax.Array) -> effax.Array:
        params: Weights = effax.tree.map(lambda ref: ref[...], state["params"])
        value, grads = effax.value_and_grad(loss)(params, batch, s)
        state["t"][...] += 1
        t = state["t"][...].astype("float32")
        rate = s.rate * jnp.minimum(t / 50.0, 1.0) * jnp.sqrt(1 - 0.99**t) / (1 - 0.9**t)

        def adam(p: effax.Ref, m: effax.Ref, v: effax.Ref, g: effax.Array) -> None:
            m[...] = 0.9 * m[...] + 0.1 * g
            v[...] = 0.99 * v[...] + 0.01 * g * g
            p[...] -= rate * m[...] / (jnp.sqrt(v[...]) + 1e-8)

        with effax.named_scope("adam"):
            effax.tree.map(adam, state["params"], state["m"], state["v"], grads)
        return value

    return step


def batches(text: np.ndarray, s: Settings) -> Callable[[], effax.Array]:
    """Return a function that draws a batch of random windows of the text."""
    rng = np.random.default_rng(s.seed)

    def draw() -> effax.Array:
        starts = rng.integers(0, len(text) - s.context - 1, s.batch)
        return jnp.asarray(np.stack([text[i : i + s.context + 1] for i in starts]), "int32")

    return draw


def train(state: State, text: np.ndarray, s: Settings) -> list[float]:
    """Train in place, and return the loss of each step."""
    step, draw = effax.jit(make_step(s)), batches(text, s)
    losses: list[float] = []
    start = time.perf_counter()
    for i in range(s.steps):
        losses.append(float(step(state, draw())))
        if (i + 1) % max(s.steps // 8, 1) == 0:
            spent = time.perf_counter() - start
            print(f"step {i + 1:4}: loss {np.mean(losses[-20:]):.3f}, {spent:.0f} s")
    return losses


def draw_program(program: Jaxpr, folder: Path) -> None:
    """Write the step as a page, as a picture, and in time."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "step.html": show.html(program, title="A training step of a GPT", heat="flops"),
        "step.svg": show.svg(program, title="A training step of a GPT"),
        "memory.svg": show.timeline(program),
    }
    for name, text in pictures.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"The step is drawn in {folder}: {', '.join(pictures)}.")


def run_passes(step: Step, state: State, batch: effax.Array) -> tuple[int, int]:
    """Run the step with passes, check that it does the same, and return the sizes of both."""
    small = fixpoint(fold | simplify | cse | forward_stores | dce)
    states = copy.deepcopy(state), copy.deepcopy(state)
    values = effax.jit(step)(states[0], batch), effax.jit(step, passes=small)(states[1], batch)
    gap = abs(float(values[0] - values[1]))
    for first, second in zip(*map(effax.tree.leaves, states), strict=True):
        gap = max(gap, float(jnp.max(jnp.abs(first[...] - second[...]))))
    program = effax.make_jaxpr(step)(state, batch).jaxpr
    sizes = len(program.eqns), len(small(program).unwrap().eqns)
    print(f"{small}: {sizes[0]} equations become {sizes[1]}, and results differ by {gap:.1e}.")
    if gap > 1e-5:
        raise SystemExit("the passes changed the step")
    return sizes


def planted_nan(s: Settings, batch: effax.Array) -> debug.Found | None:
    """Return the first nan of a step whose norm lacks its epsilon, on vectors of zeros."""
    faulty = s._replace(epsilon=0.0)
    state = new_state(faulty)
    for table in state["params"]["embed"].values():
        table[0] = 0.0
    batch = batch.at[0, 0].set(0)
    return debug.first(make_step(faulty), "nan")(state, batch)


def sample(state: State, prompt: bytes, length: int, s: Settings) -> str:
    """Continue a text by random bytes of the model's distribution."""
    params: Weights = effax.tree.map(lambda ref: ref[...], state["params"])
    model = effax.jit(partial(logits, s=s))
    key = effax.random.PRNGKey(s.seed)
    text = list(prompt)
    for i in range(length):
        window = text[-s.context :]
        padded = jnp.asarray(window + [0] * (s.context - len(window)), "int32")
        scores = model(params, padded)[len(window) - 1]
        text.append(int(effax.random.categorical(effax.random.fold_in(key, i), scores / 0.8)))
    return bytes(text).decode(errors="replace")


class Report(NamedTuple):
    """The results of a run.

    Attributes:
        losses: the loss of each step.
        entropy: the entropy of single bytes.
        cost: the cost of a step.
        sizes: the equations of the step, before and after the passes.
        found: the first nan of the faulty step.
    """

    losses: list[float]
    entropy: float
    cost: Cost
    sizes: tuple[int, int]
    found: debug.Found | None


def run(s: Settings, folder: Path) -> Report:
    """Train, then look at the step as a program."""
    text = corpus()
    state, step, batch = new_state(s), make_step(s), batches(text, s)()
    entropy = unigram_entropy(text)
    print(f"{len(text)} bytes, whose entropy is {entropy:.3f} nats each.\n")
    print(effax.signature_of(step)(state, batch))
    cost = effax.cost(step)(state, batch)
    print(f"\n{cost}\n")
    losses = train(state, text, s)
    print(f"\n{sample(state, b'A program is ', 200, s)}\n")
    draw_program(effax.make_jaxpr(step)(state, batch).jaxpr, folder)
    sizes = run_passes(step, state, batch)
    found = planted_nan(s, batch)
    print(f"\nThe first nan of a step without an epsilon:\n{found}")
    return Report(losses, entropy, cost, sizes, found)


def main() -> None:
    """Run with the settings of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=Settings().steps)
    parser.add_argument("--layers", type=int, default=Settings().layers)
    parser.add_argument("--out", type=Path, default=Path("out/gpt"))
    args = parser.parse_args()
    report = run(Settings(steps=args.steps, layers=args.layers), args.out)
    final = float(np.mean(report.losses[-20:]))
    print(f"\nThe loss is {final:.3f}; without a context it would be {report.entropy:.3f}.")
    if final > 0.75 * report.entropy:
        raise SystemExit("expected a loss clearly below the entropy of single bytes")


if __name__ == "__main__":
    main()
