"""The cases with their budgets: passes over programs, calls, and nested ``grad``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import programs
import theirs
from measure import Case, Prepare, Thunk

import effax
import effax.numpy as enp
from effax.ir.analysis.check import check
from effax.ir.syntax import Jaxpr
from effax.transforms.discharge import discharge
from effax.transforms.framework.runner import unwrap
from effax.transforms.jvp import jvp
from effax.transforms.optimize.dce import dce
from effax.transforms.vmap.engine import vmap

LEVEL = 0.9
"""The budget for the speed of JAX, with a tolerance of a tenth for noise."""

Build = Callable[[Any, int, float], programs.Function]
Pass = Callable[[Any], object]


def constant(seed: int) -> float:
    """Return a literal that is exact in 32 bits and different for each seed."""
    return 1.0 + seed / 4096


def program_cases(sizes: tuple[int, ...]) -> Iterator[Case]:
    """Yield passes over programs of each size; the unit is an equation of the input program."""
    for n in sizes:
        yield from _tracing(n)
        yield _pass("jvp", n, 10, programs.elementwise, _our_jvp, theirs.jvp)
        yield _pass("vmap", n, 10, programs.elementwise, _our_vmap, theirs.vmap)
        yield _pass("check", n, 8, programs.elementwise, check, theirs.check)
        yield _pass("print", n, 8, programs.elementwise, str, str)
        yield _pass("dce", n, None, programs.half_dead, _our_dce, theirs.dce)
        yield _discharge(n)


def function_cases(n: int) -> Iterator[Case]:
    """Yield eager derivatives of a function of ``n`` equations, traced each time."""
    yield _derivative("function: jvp", n, 15, lambda lib, f, x: lib.jvp(f, (x,), (x,)))
    yield _derivative("function: vmap", n, 10, lambda lib, f, x: lib.vmap(f)(x))
    yield _derivative("function: linearize", n, 25, lambda lib, f, x: lib.linearize(f, x))
    yield _derivative("function: vjp", n, 25, lambda lib, f, x: lib.vjp(f, x))
    yield _derivative(
        "function: jvp of grad", n, 25, lambda lib, f, x: lib.jvp(_slope(lib, f), (x,), (x,))
    )


def _slope(library: Any, f: programs.Function) -> programs.Function:
    slope: programs.Function = library.grad(lambda x: f(x).sum())
    return slope


def _derivative(name: str, n: int, budget: float, apply: Callable[[Any, Any, Any], object]) -> Case:
    def side(library: Any, np: Any) -> Prepare:
        x = np.ones(programs.WIDTH)

        def prepare(seed: int) -> Thunk:
            f = programs.elementwise(np, n, constant(seed))
            return lambda: library.make_jaxpr(lambda x: apply(library, f, x))(x)

        return prepare

    return Case(named(name, n), side(effax, enp), side(jax, jnp), budget, n)


def named(what: str, size: int) -> str:
    """Return the name of a case of this size."""
    return f"{what} {size:,}"


def _tracing(n: int) -> Iterator[Case]:
    our_x, their_x = enp.ones(programs.WIDTH), jnp.ones(programs.WIDTH)

    def our_trace(seed: int) -> Thunk:
        f = programs.elementwise(enp, n, constant(seed))
        return lambda: effax.make_jaxpr(f)(our_x)

    def their_trace(seed: int) -> Thunk:
        f = programs.elementwise(jnp, n, constant(seed))
        return lambda: jax.make_jaxpr(f)(their_x)

    def our_grad(seed: int) -> Thunk:
        f = programs.loss(enp, n, constant(seed))
        return lambda: effax.make_jaxpr(effax.grad(f))(our_x)

    def their_grad(seed: int) -> Thunk:
        f = programs.loss(jnp, n, constant(seed))
        return lambda: jax.make_jaxpr(jax.grad(f))(their_x)

    yield Case(named("trace", n), our_trace, their_trace, 8, n)
    yield Case(named("grad", n), our_grad, their_grad, 25, n)


def _pass(what: str, n: int, budget: float | None, build: Build, ours: Pass, its: Pass) -> Case:
    our_x, their_x = enp.ones(programs.WIDTH), jnp.ones(programs.WIDTH)

    def prepare_ours(seed: int) -> Thunk:
        program = effax.make_jaxpr(build(enp, n, constant(seed)))(our_x).jaxpr
        return lambda: ours(program)

    def prepare_theirs(seed: int) -> Thunk:
        program = jax.make_jaxpr(build(jnp, n, constant(seed)))(their_x)
        return lambda: its(program)

    return Case(named(what, n), prepare_ours, prepare_theirs, budget, n)


def _our_jvp(program: Jaxpr) -> object:
    return unwrap(jvp(program, [True] * len(program.binders)))


def _our_vmap(program: Jaxpr) -> object:
    return unwrap(vmap(program, theirs.BATCH, [0] * len(program.binders)))


def _our_dce(program: Jaxpr) -> object:
    return unwrap(dce(program, [i == 0 for i in range(len(program.outs))]))


def _discharge(n: int) -> Case:
    def prepare_ours(seed: int) -> Thunk:
        r = effax.new_ref(enp.zeros(programs.WIDTH))
        f = programs.updates(enp, n, constant(seed))
        program = effax.make_jaxpr(f)(r, enp.ones(())).jaxpr
        return lambda: unwrap(discharge(program))

    def prepare_theirs(seed: int) -> Thunk:
        r = jax.new_ref(jnp.zeros(programs.WIDTH))
        f = programs.updates(jnp, n, constant(seed))
        program = jax.make_jaxpr(f)(r, jnp.ones(()))
        return lambda: theirs.discharge(program)

    return Case(named("discharge", n), prepare_ours, prepare_theirs, units=n)


def growth_cases(depths: int) -> Iterator[Case]:
    """Yield nested applications of ``grad``; the unit is an equation of each side's result."""
    for depth in range(1, depths + 1):
        yield _nested_grad(depth)


def _nested_grad(depth: int) -> Case:
    def prepare_ours(seed: int) -> Thunk:
        f = _nested(effax, enp, depth, seed)
        return lambda: effax.make_jaxpr(f)(1.0)

    def prepare_theirs(seed: int) -> Thunk:
        f = _nested(jax, jnp, depth, seed)
        return lambda: jax.make_jaxpr(f)(1.0)

    def sizes() -> tuple[int, int]:
        ours = effax.make_jaxpr(_nested(effax, enp, depth, 0))(1.0).jaxpr
        its = jax.make_jaxpr(_nested(jax, jnp, depth, 0))(1.0)
        return _size(ours), theirs.equations(its)

    return Case(f"grad nested {depth} deep", prepare_ours, prepare_theirs, units=sizes)


def _nested(library: Any, np: Any, depth: int, seed: int) -> Callable[[float], Any]:
    f = programs.scalar(np, constant(seed))
    for _ in range(depth):
        f = library.grad(f)
    return f


def _size(program: Jaxpr) -> int:
    inside = (inner for eqn in program.eqns for inner in eqn.prim.subjaxprs())
    return len(program.eqns) + sum(map(_size, inside))


def call_cases() -> Iterator[Case]:
    """Yield calls that are cached for the types of their arguments; the unit is a call."""
    yield call("call: scalar + 1", LEVEL, _one_argument)
    yield call("call: two arrays", LEVEL, _two_arrays)
    yield call("call: array of 64", LEVEL, _array_of_64)
    yield call("call: keyword argument", LEVEL, _keyword_argument)
    yield call("call: block on result", LEVEL, _blocked)
    yield call("call: Python number", LEVEL, _python_number)
    yield call("call: NumPy array", LEVEL, _numpy_array)
    yield call("call: static argument", LEVEL, _static_argument)
    yield call("call: 10 arguments", LEVEL, _ten_arguments)
    yield call("call: dict of 20 arrays", LEVEL, partial(_dict_argument, 20))
    yield call("call: dict of 100 arrays", LEVEL, partial(_dict_argument, 100))
    yield call("call: 100 args, results", LEVEL, _hundred_arguments)
    yield call("call: value_and_grad", LEVEL, _jitted_value_and_grad)
    yield call("call: grad", LEVEL, _jitted_grad)
    yield call("call: internal ref", LEVEL, _internal_ref)
    yield call("call: ref argument", 10, _ref_argument)
    yield call("call: closed-over ref", 6, _closed_over_ref)
    yield call("call: 10 refs", 8, _ten_refs)
    yield call("jit of a fresh lambda", 1000, _fresh_lambda)
    yield call("eager r[i] = v", 30, _eager_write)
    yield call("eager r[i] += v", 100, _eager_add)
    yield call("eager a + b", None, _eager_sum)


def call(name: str, budget: float | None, make: Callable[[Any, Any], Thunk]) -> Case:
    """Return a case of a thunk that is the same in both libraries: the package and its NumPy."""
    ours: Prepare = lambda _: make(effax, enp)  # noqa: E731
    its: Prepare = lambda _: make(jax, jnp)  # noqa: E731
    return Case(name, ours, its, budget, fresh=False)


def _jitted(library: Any, f: programs.Function, *args: object) -> Thunk:
    g = library.jit(f)
    return lambda: g(*args)


def _one_argument(library: Any, np: Any) -> Thunk:
    return _jitted(library, programs.add_one, np.ones(()))


def _ten_arguments(library: Any, np: Any) -> Thunk:
    return _jitted(library, programs.add_ten, *[np.ones(()) for _ in range(10)])


def _dict_argument(size: int, library: Any, np: Any) -> Thunk:
    tree = {f"w{i}": np.ones(programs.WIDTH) for i in range(size)}
    return _jitted(library, programs.add_to_each, tree)


def _hundred_arguments(library: Any, np: Any) -> Thunk:
    arrays = [np.ones(()) for _ in range(100)]
    return _jitted(library, lambda *xs: [x + 1 for x in xs], *arrays)


def _two_arrays(library: Any, np: Any) -> Thunk:
    return _jitted(library, lambda a, b: a + b, np.ones(()), np.ones(()))


def _array_of_64(library: Any, np: Any) -> Thunk:
    return _jitted(library, programs.add_one, np.ones(64))


def _keyword_argument(library: Any, np: Any) -> Thunk:
    g, x = library.jit(lambda x, scale: x * scale), np.ones(())
    return lambda: g(x, scale=x)


def _blocked(library: Any, np: Any) -> Thunk:
    g, x = library.jit(programs.add_one), np.ones(())
    return lambda: g(x).block_until_ready()


def _python_number(library: Any, np: Any) -> Thunk:
    return _jitted(library, lambda x, s: x * s, np.ones(()), 2.0)


def _numpy_array(library: Any, _: Any) -> Thunk:
    return _jitted(library, programs.add_one, numpy.ones(64, numpy.float32))


def _static_argument(library: Any, np: Any) -> Thunk:
    g, x = library.jit(lambda x, n: x * n, static_argnums=1), np.ones(())
    return lambda: g(x, 3)


def _loss(np: Any) -> programs.Function:
    return lambda x: np.sum(np.sin(x))


def _jitted_value_and_grad(library: Any, np: Any) -> Thunk:
    return _jitted(library, library.value_and_grad(_loss(np)), np.ones(programs.WIDTH))


def _jitted_grad(library: Any, np: Any) -> Thunk:
    return _jitted(library, library.grad(_loss(np)), np.ones(programs.WIDTH))


def _internal_ref(library: Any, np: Any) -> Thunk:
    def f(x: Any) -> Any:
        r = library.new_ref(x)
        r[...] += x
        return r[...]

    return _jitted(library, f, np.ones(programs.WIDTH))


def _new_ref(library: Any, np: Any) -> Any:
    return library.new_ref(np.zeros(programs.WIDTH))


def _ref_argument(library: Any, np: Any) -> Thunk:
    return _jitted(library, programs.count_up, _new_ref(library, np), np.ones(()))


def _closed_over_ref(library: Any, np: Any) -> Thunk:
    r = _new_ref(library, np)
    return _jitted(library, lambda x: programs.count_up(r, x), np.ones(()))


def _ten_refs(library: Any, np: Any) -> Thunk:
    refs = [_new_ref(library, np) for _ in range(10)]
    return _jitted(library, programs.count_up_each, refs, np.ones(()))


def _fresh_lambda(library: Any, np: Any) -> Thunk:
    x = np.ones(())
    return lambda: library.jit(lambda x: x + 1)(x)


def _eager_write(library: Any, np: Any) -> Thunk:
    r, v = _new_ref(library, np), np.ones(())

    def write() -> None:
        r[3] = v

    return write


def _eager_add(library: Any, np: Any) -> Thunk:
    r, v = _new_ref(library, np), np.ones(())

    def add() -> None:
        r[3] += v

    return add


def _eager_sum(_: Any, np: Any) -> Thunk:
    a, b = np.ones(programs.WIDTH), np.ones(programs.WIDTH)
    return lambda: a + b
