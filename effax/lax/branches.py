"""Branches on traced values: cond and switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, TypeVarTuple, overload

import numpy as np

from effax import tree
from effax.arrays.argument_checks import check_callable
from effax.arrays.array import Array
from effax.arrays.binding import bind, bind1
from effax.arrays.config import config
from effax.arrays.conversion import as_value
from effax.arrays.operators import ops
from effax.arrays.promotion import literal
from effax.arrays.ref import Ref
from effax.arrays.trace_cache import trace_operands
from effax.arrays.tracing import FlatFunction, shared_consts, shown_tree
from effax.ir.dtypes import FAMILY_RANKS, family
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Clamp, Cond
from effax.ir.prims.common.subjaxpr_checks import fits
from effax.ir.syntax import Atom, Lit
from effax.ir.trace import alias_error, identity
from effax.ir.types import ArrayType, Type
from effax.lax.carries import call_tree
from effax.lax.leaves import leaves_of, promotes, with_results
from effax.lax.python_loops import TRACED, branch_in_python
from effax.tree import PyTree

__all__ = ["cond", "switch"]

X = TypeVar("X")
Y = TypeVar("Y")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class _Absent:
    """Default of an optional argument."""


_ABSENT: Final = _Absent()


@overload
def cond(
    pred: object,
    true_fun: Callable[[*Ts], R],
    false_fun: Callable[[*Ts], R],
    *operands: *Ts,
) -> R: ...
@overload
def cond(
    pred: object, true_fun: Callable[[X], R], false_fun: Callable[[X], R], *, operand: X
) -> R: ...
@overload
def cond(
    pred: object,
    true_operand: X,
    true_fun: Callable[[X], R],
    false_operand: Y,
    false_fun: Callable[[Y], R],
    /,
) -> R: ...
def cond(
    pred: object,
    true_fun: object,
    false_fun: object,
    *operands: object,
    operand: object = _ABSENT,
) -> PyTree:
    """Return ``true_fun(*operands)`` if ``pred`` is true, else ``false_fun(*operands)``.

    Also ``cond(pred, true_operand, true_fun, false_operand, false_fun)``, an older form with one
    operand per branch.

    Args:
        pred: boolean scalar; a number is compared with 0.
        true_fun: branch taken where ``pred`` is true.
        false_fun: the other branch.
        operands: trees of arrays and references, the arguments of the branches.
        operand: single operand, an older form.

    Returns:
        Result of the branch taken.

    Raises:
        IllTyped: ``pred`` is not a scalar, or the branches return different types.
        BadArgument: a branch is not a function, or operands have both forms.

    >>> lax.cond(True, lambda x: x + 1, lambda x: x - 1, jnp.array(3))
    Array(4, dtype=int32, weak_type=True)
    """
    if len(operands) == 2 and not (callable(true_fun) and callable(false_fun)):
        false_operand, last = operands
        if callable(false_fun) and callable(last):
            return _older(pred, true_fun, false_fun, false_operand, last)
    if_true = check_callable(true_fun, "cond: true_fun")
    if_false = check_callable(false_fun, "cond: false_fun")
    operands = _operands(operands, operand, "cond")
    test = as_value(pred, "the predicate of cond")
    if test.shape:
        raise IllTyped(
            "cond: the predicate must be a scalar",
            expected="bool[]",
            found=str(test.type),
            remedy="use `numpy.where` to select elementwise",
        )
    if test.dtype != np.bool_:
        test = ops.not_equal(test, 0)
    return _choose(test, [if_false, if_true], operands, ["false_fun", "true_fun"], "cond")


def _older(
    pred: object,
    true_operand: object,
    true_fun: Callable[[PyTree], object],
    false_operand: object,
    false_fun: Callable[[PyTree], object],
) -> PyTree:
    def if_true(x: object, _: object) -> object:
        return true_fun(x)

    def if_false(_: object, x: object) -> object:
        return false_fun(x)

    return cond(pred, if_true, if_false, true_operand, false_operand)


def _operands(operands: tuple[object, ...], operand: object, what: str) -> tuple[object, ...]:
    if operand is _ABSENT:
        return operands
    if operands:
        raise BadArgument(
            f"{what} takes operands by position or by name, not both",
            expected="one or the other",
            found=f"{len(operands)} by position, and `operand`",
        )
    return (operand,)


@overload
def switch(index: object, branches: Sequence[Callable[[*Ts], R]], *operands: *Ts) -> R: ...
@overload
def switch(index: object, branches: Sequence[Callable[[X], R]], *, operand: X) -> R: ...
def switch(
    index: object,
    branches: Sequence[Callable[..., object]],
    *operands: object,
    operand: object = _ABSENT,
) -> PyTree:
    """Return ``branches[index](*operands)``.

    Args:
        index: integer scalar, clamped to the branches.
        branches: nonempty sequence of functions.
        operands: trees of arrays and references, the arguments of the branches.
        operand: single operand, an older form.

    Returns:
        Result of the branch taken.

    Raises:
        IllTyped: ``index`` is not an integer scalar, or the branches return different types.
        BadArgument: there is no branch, or one is not a function.

    >>> lax.switch(1, [lambda x: x + 1, lambda x: x * 2], jnp.array(3))
    Array(6, dtype=int32, weak_type=True)
    """
    operands = _operands(operands, operand, "switch")
    if not (isinstance(branches, list | tuple) and branches):
        raise BadArgument(
            "switch needs at least one branch",
            expected="a sequence of functions",
            found=f"{type(branches).__name__}: {branches!r:.60}",
        )
    for i, branch in enumerate(branches):
        check_callable(branch, f"switch: branch {i}")
    chosen = as_value(index, "the index of switch")
    if chosen.shape or family(chosen.dtype) not in ("int", "uint"):
        raise IllTyped(
            "switch: the index must be an integer scalar",
            expected="an integer, or an array of one",
            found=str(chosen.type),
            remedy="use `cond` for a boolean" if chosen.dtype == np.bool_ else None,
        )
    if len(branches) == 1:
        return branches[0](*operands)
    last = literal(len(branches) - 1, chosen.type)
    clamped = bind1(Clamp(), literal(0, chosen.type), chosen, last)
    names = [f"branch {i}" for i in range(len(branches))]
    return _choose(ops.astype(clamped, "int32"), branches, operands, names, "switch")


def _choose(
    index: Array,
    branches: Sequence[Callable[..., object]],
    operands: Sequence[object],
    names: Sequence[str],
    what: str,
) -> PyTree:
    if config.disable_jit:
        done = branch_in_python(index, branches, operands)
        if done is not TRACED:
            return done
    args = leaves_of(tuple(operands), "operands")
    call = call_tree(*args.treedef.children())
    flats = [
        trace_operands(f, call, args, f"{name} of {what}")
        for f, name in zip(branches, names, strict=True)
    ]
    _check_trees(flats, names, what)
    wanted = _result_types(flats, names, what)
    consts, jaxprs = shared_consts(flats)
    agreed = tuple([with_results(jaxpr, wanted) for jaxpr in jaxprs])
    closed = {identity(c) for c in consts}
    for x, name in zip(args.leaves, args.names, strict=True):
        if isinstance(x, Ref) and identity(x) in closed:
            raise alias_error(f"{what} takes a reference as {name} that a branch closes over", x)
    outs = bind(Cond(agreed), index, *consts, *args.leaves)
    return tree.unflatten(flats[0].out_tree, outs)


def _check_trees(flats: Sequence[FlatFunction], names: Sequence[str], what: str) -> None:
    first = flats[0]
    for flat, name in zip(flats[1:], names[1:], strict=True):
        if flat.out_tree != first.out_tree:
            raise IllTyped(
                f"{what}: {name} returns a different structure than {names[0]}",
                expected=shown_tree(first.out_tree),
                found=shown_tree(flat.out_tree),
            )


def _result_types(
    flats: Sequence[FlatFunction], names: Sequence[str], what: str
) -> tuple[Type, ...]:
    """Return the types to which the results of all branches promote."""
    tree_ = flats[0].out_tree
    paths = tree.paths(tree.unflatten(tree_, range(tree_.num_leaves)))
    results = zip(*(flat.jaxpr.outs for flat in flats), strict=True)
    return tuple(
        _common_type(atoms, names, f"{what}: result{path}")
        for atoms, path in zip(results, paths, strict=True)
    )


def _common_type(atoms: Sequence[Atom], names: Sequence[str], result: str) -> Type:
    """Return the type of one result: that of a strong alternative, or the join of weak ones.

    Raises IllTyped where a weak alternative would lose its value or its kind in that type.
    """
    types = [a.type for a in atoms]
    strong = [i for i, t in enumerate(types) if not (isinstance(t, ArrayType) and t.weak)]
    first = strong[0] if strong else max(range(len(types)), key=lambda i: _height(types[i]))
    wanted = types[first]
    for i, atom in enumerate(atoms):
        if not (fits(atom.type, wanted) or promotes(atom, wanted)):
            before, after = sorted((i, first))
            raise IllTyped(
                f"{result} of {names[after]} has a different type than that of {names[before]}",
                expected=_shown(atoms[before]),
                found=_shown(atoms[after]),
                remedy="convert it: `.astype(...)`" if atom.type.shape == wanted.shape else None,
            )
    return wanted


def _shown(atom: Atom) -> str:
    return f"{atom.value}, of {atom.type}" if isinstance(atom, Lit) else str(atom.type)


def _height(type_: Type) -> tuple[int, int]:
    """Return the position of a dtype in the order of promotion."""
    return FAMILY_RANKS[family(type_.dtype)], type_.dtype.itemsize
