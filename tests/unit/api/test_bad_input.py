"""Bad input of compiling and differentiating: typed errors that name it as the user wrote it."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import tree
from effax.ir.errors import BadArgument, ConcretizationError, IllTyped
from tests.unit.api.refusals import Bad, check, jax, matrix, total, vector


class Incomparable:
    """A value whose comparison raises."""

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise KeyError("no order")


keyed = effax.jit(lambda x, key: x, static_argnums=1)

COMPILED: dict[str, Bad] = {
    "no function": Bad(lambda: jax.jit(3), BadArgument, "jit takes a function", "int: 3"),
    "a string": Bad(lambda: jax.jit(lambda name: name)("a"), IllTyped, "name is not an", "'a'"),
    "an object in a tree": Bad(
        lambda: jax.jit(lambda params, y: y)({"w": object()}, 1),
        IllTyped,
        r"params\['w'\] is not an array",
        "object",
    ),
    "one of the rest": Bad(
        lambda: jax.jit(lambda x, *rest: x)(1.0, 2.0, [3.0, "a"]),
        IllTyped,
        r"rest\[1\]\[1\] is not an array",
        "'a'",
    ),
    "a keyword": Bad(lambda: jax.jit(lambda *, k: k)(k={"a": "b"}), IllTyped, r"k\['a'\]", "'b'"),
    "strings of NumPy": Bad(
        lambda: jax.jit(lambda x: x)(np.array(["a"])), IllTyped, "x has a dtype", "<U1"
    ),
    "objects of NumPy": Bad(
        lambda: jax.jit(lambda x: x)(np.array([object()])), IllTyped, "x has a dtype", "object"
    ),
    "a result that is a string": Bad(
        lambda: jax.jit(lambda x: {"a": ["s"]})(1.0),
        IllTyped,
        r"the result\['a'\]\[0\] of jit",
        "'s'",
    ),
    "an integer that is too large": Bad(
        lambda: jax.jit(lambda x: x)(2**40), BadArgument, "1099511627776 does not fit", "1099511"
    ),
    "a branch on a value": Bad(
        lambda: jax.jit(lambda x, y: x if y > 0 else -x)(1.0, 2.0),
        ConcretizationError,
        "is not known while jit",
        "depends on y",
    ),
    "a shape that is a value": Bad(
        lambda: jax.jit(lambda n: jnp.ones(n["k"]))({"k": 3}),
        ConcretizationError,
        "is not known while jit",
        r"depends on n\['k'\]",
    ),
    "a NumPy function on a value": Bad(
        lambda: jax.jit(lambda x: np.sin(x + 1))(1.0), ConcretizationError, "jit", "depends on x"
    ),
    "a static position that does not exist": Bad(
        lambda: jax.jit(lambda x: x, static_argnums=2), BadArgument, "static_argnums", "2"
    ),
    "a static position that is no integer": Bad(
        lambda: jax.jit(lambda x: x, static_argnums="x"), BadArgument, "static_argnums", "'x'"
    ),
    "a static name that does not exist": Bad(
        lambda: jax.jit(lambda x: x, static_argnames="y"), BadArgument, "static_argnames", "y"
    ),
    "a static name that is no string": Bad(
        lambda: jax.jit(lambda x: x, static_argnames=[1]), BadArgument, "static_argnames", r"\[1\]"
    ),
    "a static argument that is a list": Bad(
        lambda: jax.jit(lambda x, sizes: x, static_argnums=1)(1.0, [2]),
        BadArgument,
        "static argument sizes is not hashable",
        r"\[2\]",
    ),
    "a static argument that is an array": Bad(
        lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, vector()),
        BadArgument,
        "static argument n is an array",
        "Array",
    ),
    "a static argument that cannot be compared": Bad(
        lambda: [keyed(1.0, Incomparable()) for _ in range(2)],
        BadArgument,
        "comparable by ==",
        "KeyError",
    ),
    "a static argument that is traced": Bad(
        lambda: jax.jit(lambda n: jax.jit(lambda x, n: x, static_argnames="n")(1.0, n=n))(3),
        BadArgument,
        "static argument n is an array",
        "Traced",
    ),
    "a compiled call of another type": Bad(
        lambda: jax.jit(lambda x: x).lower(1.0).compile()(vector()),
        IllTyped,
        "a compiled call has the wrong",
        r"f32\[3\]",
    ),
    "a compiled call of another structure": Bad(
        lambda: jax.jit(lambda x: x).lower(1.0).compile()(1.0, 2.0),
        IllTyped,
        "arguments of a compiled call",
        r"\(\*, \*\)",
    ),
    "a program of no function": Bad(
        lambda: jax.make_jaxpr(3), BadArgument, "make_jaxpr takes", "int: 3"
    ),
    "a program of a string": Bad(
        lambda: jax.make_jaxpr(lambda x: x)("a"), IllTyped, "x is not an array", "'a'"
    ),
    "shapes of no function": Bad(lambda: jax.eval_shape(3), BadArgument, "eval_shape", "int: 3"),
    "shapes of a string": Bad(
        lambda: jax.eval_shape(lambda p: p, {"a": "s"}), IllTyped, r"p\['a'\]", "'s'"
    ),
    "the type of a string": Bad(lambda: jax.typeof("a"), IllTyped, "typeof", "'a'"),
    "a negative shape": Bad(
        lambda: jax.ShapeDtypeStruct((2, -1), "float32"), IllTyped, "shape", r"-1"
    ),
    "a shape of floats": Bad(
        lambda: jax.ShapeDtypeStruct((2.5,), "float32"), BadArgument, "shape", "2.5"
    ),
    "a scope without a name": Bad(
        lambda: jax.named_scope(3).__enter__(), BadArgument, "named_scope", "int: 3"
    ),
}

DIFFERENTIATED: dict[str, Bad] = {
    "no function": Bad(lambda: jax.grad("f"), BadArgument, "grad takes a function", "'f'"),
    "no scalar": Bad(
        lambda: jax.grad(lambda w: w * 2)(vector()), IllTyped, "returns a scalar", r"f32\[3\]"
    ),
    "two results": Bad(
        lambda: jax.grad(lambda w: (w.sum(), w))(vector()), IllTyped, "one scalar", r"\(\*, \*\)"
    ),
    "no result": Bad(lambda: jax.grad(lambda w: None)(1.0), IllTyped, "one scalar", "None"),
    "an integer result": Bad(lambda: jax.grad(lambda w: 3)(1.0), IllTyped, "real number", "i32"),
    "a complex result": Bad(
        lambda: jax.grad(lambda w: w * 1j)(1.0), IllTyped, "the result is complex", "c64"
    ),
    "an integer argument": Bad(
        lambda: jax.grad(lambda p: p["n"] * 2.0)({"n": 3}),
        IllTyped,
        r"with respect to p\['n'\], which is not real",
        "i32",
    ),
    "a string argument": Bad(lambda: jax.grad(lambda w: 1.0)("a"), IllTyped, "w is not", "'a'"),
    "an argument that does not exist": Bad(
        lambda: jax.grad(total, 1)(vector()), BadArgument, "argnums names", "1, in a call with 1"
    ),
    "an argument by name": Bad(
        lambda: jax.grad(total)(w=vector()), BadArgument, "argnums names", "call with 0"
    ),
    "argnums that is a name": Bad(
        lambda: jax.grad(total, "w")(vector()), BadArgument, "argnums", "'w'"
    ),
    "argnums that is a float": Bad(
        lambda: jax.grad(total, 0.0)(vector()), BadArgument, "argnums", "0.0"
    ),
    "a real argument of a holomorphic function": Bad(
        lambda: jax.grad(lambda z: z * z, holomorphic=True)(1.0),
        IllTyped,
        "z is not complex",
        "f32",
    ),
    "no pair": Bad(
        lambda: jax.value_and_grad(total, has_aux=True)(vector()), IllTyped, "pair", "Traced"
    ),
    "jvp without tuples": Bad(
        lambda: jax.jvp(total, vector(), vector()), BadArgument, "in tuples", "DeviceArray"
    ),
    "too many tangents": Bad(
        lambda: jax.jvp(total, (vector(),), (vector(), vector())), IllTyped, "tangents", r"\*, \*"
    ),
    "a tangent of another shape": Bad(
        lambda: jax.jvp(total, (vector(),), (matrix(),)),
        IllTyped,
        "tangent of w has",
        r"f32\[2,3\]",
    ),
    "a tangent of another dtype": Bad(
        lambda: jax.jvp(total, (vector(),), (jnp.arange(3),)), IllTyped, "tangent of w", r"i32\[3\]"
    ),
    "a tangent of an integer": Bad(
        lambda: jax.jvp(lambda n: n * 2.0, (3,), (1.0,)),
        IllTyped,
        "tangent of n must be zero",
        "f32",
    ),
    "a tangent in another tree": Bad(
        lambda: jax.jvp(lambda d: d["a"], ({"a": 1.0},), ({"b": 1.0},)),
        IllTyped,
        "structure",
        r"\{'b': \*\}",
    ),
    "no tangent": Bad(lambda: jax.jvp(total, (vector(),), (None,)), IllTyped, "structure", "None"),
    "a tangent pushed, of another shape": Bad(
        lambda: jax.linearize(total, vector())[1](jnp.ones(2)),
        IllTyped,
        "tangent of w",
        r"f32\[2\]",
    ),
    "a cotangent of another shape": Bad(
        lambda: jax.vjp(lambda x: {"y": x}, vector())[1]({"y": jnp.ones(4)}),
        IllTyped,
        r"cotangent of the result\['y'\] has the wrong type",
        r"f32\[4\]",
    ),
    "a scalar cotangent of a vector": Bad(
        lambda: jax.vjp(lambda x: x, vector())[1](1.0), IllTyped, "cotangent", r"f32\[\]"
    ),
    "a cotangent of another dtype": Bad(
        lambda: jax.vjp(lambda x: x, vector())[1](jnp.arange(3)), IllTyped, "cotangent", "i32"
    ),
    "a cotangent in another tree": Bad(
        lambda: jax.vjp(lambda x: (x, x), 1.0)[1](1.0), IllTyped, "structure", r"\*"
    ),
    "no cotangent": Bad(lambda: jax.vjp(total, vector())[1](None), IllTyped, "structure", "None"),
    "a cotangent that is a string": Bad(
        lambda: jax.vjp(total, vector())[1]("a"), IllTyped, "cotangent of the result is not", "'a'"
    ),
    "a forward Jacobian of integers": Bad(
        lambda: jax.jacfwd(lambda n: n)(3), IllTyped, "respect to n", "i32"
    ),
    "a forward Jacobian of complex numbers": Bad(
        lambda: jax.jacfwd(lambda z: z)(1j), IllTyped, "z is complex", "c64"
    ),
    "a reverse Jacobian of a complex result": Bad(
        lambda: jax.jacrev(lambda x: {"y": x * 1j})(1.0),
        IllTyped,
        r"the result\['y'\] is complex",
        "c64",
    ),
    "a reverse Jacobian of an integer result": Bad(
        lambda: jax.jacrev(lambda x: 3)(1.0), IllTyped, "the result is not real", "i32"
    ),
    "a Jacobian for an argument that does not exist": Bad(
        lambda: jax.jacfwd(total, 3)(vector()), BadArgument, "argnums", "3"
    ),
    "a Jacobian of no function": Bad(lambda: jax.jacrev(3), BadArgument, "jacrev takes", "int: 3"),
    "a Hessian of no function": Bad(lambda: jax.hessian(3), BadArgument, "hessian takes", "int: 3"),
    "a Hessian of a string": Bad(lambda: jax.hessian(total)("a"), IllTyped, "w is not an", "'a'"),
    "a checkpoint of no function": Bad(
        lambda: jax.checkpoint(3), BadArgument, "checkpoint takes", "int: 3"
    ),
}

TREES: dict[str, Bad] = {
    "other keys": Bad(
        lambda: tree.map(lambda a, b: a, {"a": 1}, {"b": 2}), BadArgument, "tree number 2", "b"
    ),
    "too few leaves": Bad(
        lambda: tree.unflatten(tree.structure((1, 2)), [1]), BadArgument, "do not fit", "1"
    ),
    "an unknown setting": Bad(
        lambda: effax.config.update("jax_nothing", True), BadArgument, "jax_nothing", ""
    ),
    "a setting of another type": Bad(
        lambda: effax.config.update("jax_enable_x64", 1), BadArgument, "on or off", "1"
    ),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str) -> None:
    check(COMPILED[name])


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_differentiated(name: str) -> None:
    check(DIFFERENTIATED[name])


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str) -> None:
    check(TREES[name])


def test_errors_are_the_built_in_ones_too() -> None:
    with pytest.raises(TypeError):
        jax.grad(lambda x: x)(vector())
    with pytest.raises(ValueError, match="in_axes"):
        jax.vmap(lambda x: x, (0, 0))(vector())
    with pytest.raises(IndexError):
        jax.new_ref(vector())[7]


def test_calls_with_wrong_arguments_are_pythons_errors() -> None:
    for wrong in (lambda f: f(1.0, 2.0), lambda f: f(y=1.0), lambda f: f()):
        for wrap in (jax.jit, jax.grad, jax.make_jaxpr, lambda f: lambda *a, **k: jax.vjp(f, *a)):
            with pytest.raises((TypeError, BadArgument)):
                wrong(wrap(lambda x: x))
    with pytest.raises(TypeError, match="cotangents"):
        jax.vjp(lambda x: x, 1.0)[1]()
