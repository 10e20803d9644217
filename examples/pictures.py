"""Draw a training step: its equations, its references and its memory.

The step scans over microbatches, which accumulate their gradients into one reference. Parameters
and velocity are references of the caller, which the step updates in place. Four files are written:
the program as a picture and as a page, a timeline of its references and memory, and the equations
that forward mode adds to the loss. They include the pictures of ``docs/pictures.md``.

Run it with ``python examples/pictures.py --out pictures``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import effax
import effax.numpy as jnp
from effax import show
from effax.ir import Jaxpr
from effax.transforms import jvp, unwrap


def loss(w: Any, x: Any, y: Any) -> Any:
    """Return the mean squared error of one layer."""
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


def step(w: Any, velocity: Any, xs: Any, ys: Any) -> Any:
    """Take a step of gradient descent with momentum, accumulating gradients in place."""
    grad = effax.new_ref(jnp.zeros_like(w[...]))

    def microbatch(_: None, xy: Any) -> tuple[None, Any]:
        value, pullback = effax.vjp(lambda w: loss(w, *xy), w[...])
        pullback.with_refs(grad)(1.0)
        return None, value

    _, losses = effax.lax.scan(microbatch, None, (xs, ys))
    velocity[...] = 0.9 * velocity[...] - 0.1 * effax.freeze(grad)
    w[...] += velocity[...]
    return jnp.mean(losses)


def training_step() -> Jaxpr:
    """Trace the step for a small layer."""
    w = effax.new_ref(jnp.zeros((8, 4)))
    velocity = effax.new_ref(jnp.zeros((8, 4)))
    xs, ys = jnp.zeros((10, 32, 8)), jnp.zeros((10, 32, 4))
    return effax.make_jaxpr(step)(w, velocity, xs, ys).jaxpr


def derivative() -> tuple[Jaxpr, Jaxpr]:
    """Return the loss, and its jvp with respect to the parameters."""
    w, x, y = jnp.zeros((8, 4)), jnp.zeros((32, 8)), jnp.zeros((32, 4))
    before = effax.make_jaxpr(loss)(w, x, y).jaxpr
    return before, unwrap(jvp(before, (True, False, False))).jaxpr


def pictures() -> dict[str, str]:
    """Return the contents of every file by name."""
    program = training_step()
    return {
        "step.svg": show.svg(program, title="a training step"),
        "step.html": show.html(program, title="A training step"),
        "memory.svg": show.timeline(program),
        "jvp.svg": show.compare(*derivative(), titles=("loss", "jvp(loss)")),
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="the folder to write to")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pictures().items():
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main()
