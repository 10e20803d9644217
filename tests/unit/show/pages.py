"""Programs to draw, and functions that read pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import effax
import effax.numpy as jnp
from effax.ir.syntax import Jaxpr
from effax.show.placed import Placed

SVG = "{http://www.w3.org/2000/svg}"
jax: Any = effax


def training_step() -> Jaxpr:
    """Return a program with references, a scan, a cond, literals, and an early result."""

    def step(w_ref: Any, x: Any, y: Any) -> Any:
        total = jax.new_ref(jnp.zeros(3))

        def body(c: Any, row: Any) -> Any:
            jax.ref.addupdate(total, ..., row * c)
            return c + jnp.sum(row), c

        s, _ = jax.lax.scan(body, 1.0, x)
        w = w_ref[...]
        g = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
        w_ref[...] = w - 0.1 * g
        w_ref[0] += s
        return jax.lax.cond(s > 0, lambda: jnp.sum(g), lambda: 0.0), jax.freeze(total)

    x = jnp.ones((4, 3))
    program: Jaxpr = jax.make_jaxpr(step)(jax.new_ref(jnp.ones(3)), x, x[:, 0]).jaxpr
    return program


def chain(n: int) -> Jaxpr:
    """Return a program of about ``n`` equations, with distant uses of some operands."""

    def f(x: Any, w: Any, r: Any) -> Any:
        for i in range(n // 12):
            h = jnp.tanh(x @ w)
            x = h * 2.0 + x
            r[i % 4] = r[i % 4] + jnp.sum(h)
            y = jnp.sin(x)
            x = jnp.where(x > 0, y, jnp.cos(y))
        return x

    x = jnp.ones((4, 4))
    program: Jaxpr = jax.make_jaxpr(f)(x, x, jax.new_ref(jnp.zeros(4))).jaxpr
    return program


def elements(svg: str, class_: str) -> list[ElementTree.Element]:
    """Return the elements of a class, in order."""
    root = ElementTree.fromstring(svg)
    return [e for e in root.iter() if class_ in e.get("class", "").split()]


def titles(svg: str) -> list[str]:
    """Return the tooltip of each box."""
    found = [e.find(f"{SVG}title") for e in elements(svg, "fx-e")]
    return [e.text or "" for e in found if e is not None]


def placed_programs(placed: Placed) -> Iterator[Placed]:
    """Return the program and its subjaxprs."""
    yield placed
    for box in placed.boxes:
        for frame in box.frames:
            yield from placed_programs(frame.program)


def long_step(layers: int = 18) -> Jaxpr:
    """Return a training step with state in a dict of references: 2,000 equations for 18 layers."""
    sizes = {"w": (4, 4), "b": (4,), "scale": (4,)}

    def params_of(make: Callable[[tuple[int, ...]], Any]) -> dict[str, dict[str, Any]]:
        return {
            f"h{i}": {name: make(shape) for name, shape in sizes.items()} for i in range(layers)
        }

    def loss(params: Any, x: Any) -> Any:
        for name, p in params.items():
            with jax.named_scope(name):
                x = x + jnp.tanh(x @ p["w"] + p["b"]) * jax.nn.softmax(p["scale"])
        return jnp.mean(x**2)

    def step(state: Any, x: Any) -> Any:
        def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
            m[...] = 0.9 * m[...] + 0.1 * g
            v[...] = 0.99 * v[...] + 0.01 * g * g
            p[...] -= 0.1 * m[...] / (jnp.sqrt(v[...]) + 1e-8)
            return jnp.sum(g * g)

        params = jax.tree.map(lambda r: r[...], state["params"])
        value, grads = jax.value_and_grad(loss)(params, x)
        norms = jax.tree.map(adam, state["params"], state["m"], state["v"], grads)
        return {"loss": value, "norms": norms}

    state = {
        kind: params_of(lambda shape: jax.new_ref(jnp.zeros(shape)))
        for kind in ("m", "params", "v")
    }
    program: Jaxpr = jax.make_jaxpr(step)(state, jnp.ones((2, 4))).jaxpr
    return program
