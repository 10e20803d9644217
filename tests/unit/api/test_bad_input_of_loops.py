"""Bad input of vmap and control flow: typed errors that name it as the user wrote it."""

from __future__ import annotations

import pytest

import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, ConcretizationError, IllTyped
from tests.unit.api.refusals import Bad, check, jax, matrix, vector

BATCHED: dict[str, Bad] = {
    "no function": Bad(lambda: jax.vmap(3), BadArgument, "vmap takes a function", "int: 3"),
    "two lengths": Bad(
        lambda: jax.vmap(lambda x, y: x)(vector(), matrix()),
        IllTyped,
        "lengths",
        "3 for x, 2 for y",
    ),
    "a scalar": Bad(
        lambda: jax.vmap(lambda x, y: x)(vector(), 1.0), IllTyped, "y has no axis 0", r"f32\[\]"
    ),
    "an axis that does not exist": Bad(
        lambda: jax.vmap(lambda m: m, -3)(matrix()), IllTyped, "m has no axis -3", r"f32\[2,3\]"
    ),
    "too many axes": Bad(
        lambda: jax.vmap(lambda x: x, (0, 0))(vector()), BadArgument, "length of in_axes", "2"
    ),
    "axes of another tree": Bad(
        lambda: jax.vmap(lambda d: d, ({"b": 0},))({"a": vector()}),
        BadArgument,
        "in_axes is not a prefix",
        "'b'",
    ),
    "an axis that is a string": Bad(
        lambda: jax.vmap(lambda x: x, "a")(vector()), BadArgument, "in_axes", "'a'"
    ),
    "an axis that is a boolean": Bad(
        lambda: jax.vmap(lambda x: x, True)(vector()), BadArgument, "in_axes", "True"
    ),
    "nothing mapped": Bad(
        lambda: jax.vmap(lambda x: x, None)(vector()), BadArgument, "no argument is mapped", "x"
    ),
    "no argument": Bad(jax.vmap(lambda: 1.0), BadArgument, "no argument is mapped", "no arguments"),
    "a mapped string": Bad(
        lambda: jax.vmap(lambda x, s: x)(vector(), "abc"), IllTyped, "s is not an array", "'abc'"
    ),
    "a keyword without the axis": Bad(
        lambda: jax.vmap(lambda x, *, k: x)(vector(), k=1.0), IllTyped, "k has no axis 0", "f32"
    ),
    "a size that does not fit": Bad(
        lambda: jax.vmap(lambda x: x, axis_size=5)(vector()), IllTyped, "lengths", "5 for axis_size"
    ),
    "a size that is a string": Bad(
        lambda: jax.vmap(lambda x: x, axis_size="3"), BadArgument, "axis_size", "'3'"
    ),
    "a negative size": Bad(
        lambda: jax.vmap(lambda: 1.0, axis_size=-1), BadArgument, "axis_size is negative", "-1"
    ),
    "a name of an axis that is no name": Bad(
        lambda: jax.vmap(lambda x: x, axis_name=3), BadArgument, "the name of an axis", "int: 3"
    ),
    "a batch over a mesh": Bad(
        lambda: jax.vmap(lambda x: x, spmd_axis_name=3), BadArgument, "spmd_axis_name", "3"
    ),
    "a result axis that does not exist": Bad(
        lambda: jax.vmap(lambda x: {"y": x}, out_axes=1)(vector()),
        BadArgument,
        r"out_axes is out of range for the result\['y'\]",
        r"f32\[\] of one batch element",
    ),
    "a result that has no axis but differs": Bad(
        lambda: jax.vmap(lambda x: (x, x), out_axes=(0, None))(vector()),
        BadArgument,
        r"the result\[1\] is batched",
        "None",
    ),
    "result axes of another tree": Bad(
        lambda: jax.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(vector()),
        BadArgument,
        "out_axes is not a prefix",
        r"\(0, 0, 0\)",
    ),
    "a branch on a mapped value": Bad(
        lambda: jax.vmap(lambda x: x if x > 0 else -x)(vector()),
        ConcretizationError,
        "while vmap",
        "depends on x",
    ),
}

CONTROL: dict[str, Bad] = {
    "scan of no function": Bad(lambda: lax.scan(3, 0.0, vector()), BadArgument, "scan takes", "3"),  # type: ignore[call-overload]  # that is the point
    "scan over different lengths": Bad(
        lambda: lax.scan(lambda c, x: (c, x), 0.0, (vector(), matrix())),
        IllTyped,
        "leading sizes differ",
        r"3 for xs\[0\], 2 for xs\[1\]",
    ),
    "scan over a scalar": Bad(
        lambda: lax.scan(lambda c, x: (c, x), 0.0, {"a": 1.0}), IllTyped, r"xs\['a'\] has no", "f32"
    ),
    "scan of another length": Bad(
        lambda: lax.scan(lambda c, x: (c, x), 0.0, vector(), length=4), IllTyped, "sizes", "4 for"
    ),
    "scan of no length": Bad(
        lambda: lax.scan(lambda c, x: (c, x), 0.0),
        BadArgument,
        "unknown number of steps",
        "neither",
    ),
    "scan of a negative length": Bad(
        lambda: lax.scan(lambda c, x: (c, x), 0.0, length=-1), BadArgument, "length is neg", "-1"
    ),
    "scan of a traced length": Bad(
        lambda: jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, length=n))(3),
        ConcretizationError,
        "scan: length",
        "depends on n",
    ),
    "scan unrolled backwards": Bad(
        lambda: lax.scan(lambda c, x: (c, x), 0.0, vector(), unroll=-2), BadArgument, "unroll", "-2"
    ),
    "scan without a pair": Bad(
        lambda: lax.scan(lambda c, x: c, 0.0, vector()),  # type: ignore[arg-type, return-value]  # that is the point
        IllTyped,
        "a pair",
        r"\*",
    ),
    "scan of another shape": Bad(
        lambda: lax.scan(lambda c, x: ({"a": x[None]}, x), {"a": 0.0}, vector()),
        IllTyped,
        r"init\['a'\] changed type",
        r"f32\[1\]",
    ),
    "scan of another dtype": Bad(
        lambda: lax.scan(lambda c, x: (c * 1.5, x), jnp.int32(0), vector()), IllTyped, "init", "f32"
    ),
    "scan of another tree": Bad(
        lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, vector()),  # type: ignore[arg-type, return-value]  # that is the point
        IllTyped,
        "structure",
        r"\*, \*",
    ),
    "scan of strings": Bad(
        lambda: lax.scan(lambda c, x: (c, x), ["a"], vector()), IllTyped, r"init\[0\] is not", "'a'"
    ),
    "map over nothing": Bad(
        lambda: lax.map(lambda x: x, None),
        BadArgument,
        "map has an unknown number of steps",
        "none",
    ),
    "while without a boolean": Bad(
        lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0), IllTyped, "boolean scalar", "f32"
    ),
    "while with a tuple": Bad(
        lambda: lax.while_loop(lambda c: (c < 0,), lambda c: c, 1.0),
        IllTyped,
        "boolean",
        r"\(\*,\)",
    ),
    "while of another shape": Bad(
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0], matrix()), (0, 0.0)),
        IllTyped,
        r"init_val\[1\] changed type",
        r"f32\[2,3\]",
    ),
    "while of another tree": Bad(
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: c[0], (0,)),  # type: ignore[arg-type, return-value]  # that is the point
        IllTyped,
        "struct",
        r"\*",
    ),
    "while of no function": Bad(
        lambda: lax.while_loop(lambda c: c < 3, 1, 0),  # type: ignore[call-overload]  # that is the point
        BadArgument,
        "body_fun takes",
        "int: 1",
    ),
    "fori up to a float": Bad(
        lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 0), IllTyped, "upper must be", "f32"
    ),
    "fori up to a vector": Bad(
        lambda: lax.fori_loop(jnp.arange(2), 3, lambda i, c: c, 0), IllTyped, "lower must", "i32"
    ),
    "fori between two dtypes": Bad(
        lambda: lax.fori_loop(jnp.int8(0), jnp.int16(3), lambda i, c: c, 0),
        IllTyped,
        "lower and upper",
        "int16",
    ),
    "fori further than its dtype": Bad(
        lambda: lax.fori_loop(jnp.int8(0), 300, lambda i, c: c, 0), BadArgument, "fit", "300"
    ),
    "fori of another shape": Bad(
        lambda: lax.fori_loop(0, 3, lambda i, c: {"a": vector()}, {"a": 0.0}),
        IllTyped,
        r"fori_loop: init_val\['a'\]",
        r"f32\[3\]",
    ),
    "fori of another shape, traced": Bad(
        lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: vector(), 0.0))(3),
        IllTyped,
        "fori_loop: init_val",
        r"f32\[3\]",
    ),
    "fori of another tree": Bad(
        lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), 0.0),  # type: ignore[arg-type, return-value]  # that is the point
        IllTyped,
        "init_val",
        r"\*, \*",
    ),
    "cond on a vector": Bad(
        lambda: lax.cond(vector() > 0, lambda: 1.0, lambda: 2.0), IllTyped, "a scalar", r"bool\[3\]"
    ),
    "cond on a string": Bad(
        lambda: lax.cond("a", lambda: 1.0, lambda: 2.0), IllTyped, "predicate", "'a'"
    ),
    "cond of different shapes": Bad(
        lambda: lax.cond(True, lambda: {"a": vector()}, lambda: {"a": matrix()}),
        IllTyped,
        r"result\['a'\] of true_fun",
        r"f32\[3\]",
    ),
    "cond of different dtypes": Bad(
        lambda: lax.cond(True, lambda: jnp.int32(1), lambda: jnp.float32(1)),
        IllTyped,
        "of true_fun",
        "i32",
    ),
    "cond of different trees": Bad(
        lambda: lax.cond(True, lambda: (1.0,), lambda: {"a": 1.0}),
        IllTyped,
        "structure",
        r"\(\*,\)",
    ),
    "cond of no function": Bad(
        lambda: lax.cond(True, lambda: 1.0, 2.0),  # type: ignore[call-overload]  # that is the point
        BadArgument,
        "false_fun takes",
        "2.0",
    ),
    "cond on strings": Bad(
        lambda: lax.cond(True, lambda s: 1.0, lambda s: 2.0, ["a"]), IllTyped, "operands", "'a'"
    ),
    "switch without branches": Bad(lambda: lax.switch(0, []), BadArgument, "one branch", r"\[\]"),
    "switch on a float": Bad(
        lambda: lax.switch(0.5, [lambda: 1.0, lambda: 2.0]), IllTyped, "the index", "f32"
    ),
    "switch of different shapes": Bad(
        lambda: lax.switch(0, [lambda: 1.0, vector]), IllTyped, "result of branch 1", r"f32\[3\]"
    ),
    "switch of no function": Bad(
        lambda: lax.switch(0, [lambda: 1.0, 2]),  # type: ignore[arg-type, call-arg]  # that is the point
        BadArgument,
        "branch 1 takes",
        "int: 2",
    ),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batched(name: str) -> None:
    check(BATCHED[name])


@pytest.mark.parametrize("name", CONTROL)
def test_control(name: str) -> None:
    check(CONTROL[name])
