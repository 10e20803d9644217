"""``checkpoint``, also called ``remat``: recompute intermediate values instead of saving them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ParamSpec, TypeVar, cast

from effax import tree
from effax.api.dispatch import ready, run_call
from effax.api.stages import compiled
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import Operand, bind, bind1
from effax.arrays.config import config
from effax.arrays.conversion import as_value
from effax.arrays.trace_cache import trace_operands
from effax.arrays.tracing import FlatFunction, flat_args, label_of, like
from effax.effects import Read
from effax.ir.errors import BadArgument
from effax.ir.prims import Jit, Name, Remat, SaveAs, SaveRule
from effax.ir.prims.remat import impure_error, only_reads
from effax.ir.recursion import kinds_of
from effax.ir.trace import current_trace, shown_ref

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: object = True,
    policy: SaveRule | Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[P, R]:
    """Recompute the intermediate values of ``fun`` in its derivative instead of saving them.

    Args:
        fun: a function of trees of arrays. It may read references; the values that it reads are
            saved. It may change those that it allocates, and pass others to rules of
            ``custom_vjp`` that use them in the backward pass.
        prevent_cse: whether compiled programs keep both computations apart. It is not needed
            within ``scan``, which keeps them apart. A tree of booleans, as a prefix of the
            arguments, is the same as True where one of them is.
        policy: which values are saved nevertheless: one of ``effax.checkpoint_policies``, or a
            function of a primitive, the types of its arguments, and its parameters by name, that
            returns whether the results may be saved. None: no values.
        static_argnums: positions of arguments that are not traced.
        static_argnames: names of such arguments.

    Raises:
        BadArgument: ``fun`` is not callable, or ``policy`` is not a policy.
        RefError: called, ``fun`` changes a reference that it did not allocate.
    """
    check_callable(fun, "checkpoint")
    keeps = None if policy is None else as_rule(policy, "checkpoint")
    static = StaticArgs.of(fun, static_argnums, static_argnames)
    apart = any(map(bool, tree.leaves(prevent_cse)))

    @like(fun)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        given = cast("dict[str, object]", kwargs)
        left, dynamic, named = static.split(fun, args, given)
        of, constants = _kept_under(fun, static, args, given)
        flat = flat_args(left, dynamic, named)
        label = f"checkpoint({label_of(fun)})"
        traced = trace_operands(left, flat.treedef, flat, label, of, constants)
        operands = [*traced.consts, *flat.leaves]
        _check_pure(label, traced, operands)
        if current_trace() is None and Jit in kinds_of(traced.jaxpr) and not config.watched:
            # The user asks for compilation within: compile the whole.
            return cast(R, run_call(ready(compiled(traced.jaxpr), traced), flat.leaves))
        outs = bind(Remat(traced.jaxpr, keeps, apart), *operands)
        return cast(R, tree.unflatten(traced.out_tree, outs))

    return called


def _kept_under(
    fun: Callable[..., object],
    static: StaticArgs,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> tuple[Callable[..., object] | None, Hashable]:
    """Return the function under which a trace is kept, and its static arguments.

    None where these have no hash.
    """
    if not any(static):
        return fun, ()
    try:
        return fun, static.values_of(fun, args, kwargs, lambda _: None)
    except BadArgument:
        return None, ()


def checkpoint_name(x: T, name: str) -> T:
    """Return ``x``, a tree of arrays, unchanged; policies know its leaves as ``name``."""
    if not isinstance(name, str):
        raise BadArgument("a name is a string", found=f"{type(name).__name__}: {name!r:.60}")
    made: T = tree.map(lambda leaf: bind1(Name(name), as_value(leaf)), x)
    return made


def as_rule(policy: object, what: str) -> SaveRule:
    """Convert a policy to a value. Raises BadArgument."""
    if isinstance(policy, SaveRule):
        return policy
    if callable(policy):
        return SaveAs(policy, label_of(policy))
    raise BadArgument(
        f"{what} takes a policy",
        expected="one of effax.checkpoint_policies, or a function",
        found=f"{type(policy).__name__}: {policy!r:.60}",
        remedy="name values with `checkpoint_name`, and use `save_only_these_names(...)`",
    )


def _check_pure(label: str, traced: FlatFunction, operands: Sequence[Operand]) -> None:
    """Raise RefError, with the name or the origin of a reference, where one is changed."""
    if only_reads(traced.jaxpr):
        return
    for position in traced.jaxpr.effects.refs:
        name = traced.jaxpr.name_of(position)
        what = f"its argument {name}" if position >= traced.jaxpr.n_consts else name
        done = ", ".join(
            e.word for e in traced.jaxpr.effects.on(position) if not isinstance(e, Read)
        )
        if not done:
            continue
        raise impure_error(label, f"{done} of {what}, {shown_ref(operands[position])}")


remat = checkpoint
