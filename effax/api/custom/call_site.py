"""The call that custom rules belong to, rules traced on demand, and the checks they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import effax.numpy as jnp
from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.tangents import promotes_to
from effax.arrays.tracing import FlatFunction, TraceOptions, trace_flat
from effax.ir.build import Builder, lit
from effax.ir.errors import BadRule, EffaxError, IllTyped, TransformError
from effax.ir.prims import BroadcastInDim, Concatenate, Reshape
from effax.ir.source import raised_at
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type
from effax.tree import PyTreeDef


@dataclass(frozen=True, eq=False)
class CallSite:
    """A call of a function with custom rules, apart from the values of its arguments.

    Attributes:
        label: the name of the function, for messages.
        fixed: the arguments at ``nondiff_argnums``, which rules take first.
        nondiff: those positions.
        args_tree: the structure of the tuple of the other arguments.
        types: the types of their leaves.
        names: the user's names of their leaves.
    """

    label: str
    fixed: tuple[object, ...]
    nondiff: tuple[int, ...]
    args_tree: PyTreeDef
    types: tuple[Type, ...]
    names: tuple[str, ...]

    def is_same_call(self, other: CallSite) -> bool:
        """Return whether two calls of one function differ in the values of arrays only."""
        return (
            self.args_tree == other.args_tree
            and self.types == other.types
            and len(self.fixed) == len(other.fixed)
            and all(a is b or _equal(a, b) for a, b in zip(self.fixed, other.fixed, strict=True))
        )

    @cached_property
    def key(self) -> int:
        """Return a hash that is equal for equal calls."""
        return hash((self.args_tree, self.types, len(self.fixed)))

    def partial(self, fun: Callable[..., object]) -> Callable[..., object]:
        """Return the function of the arguments that are not fixed."""

        def called(*args: object) -> object:
            rest = iter(args)
            total = len(args) + len(self.fixed)
            places = dict(zip(self.nondiff, self.fixed, strict=True))
            return fun(*[places[i] if i in places else next(rest) for i in range(total)])

        return called


def _equal(a: object, b: object) -> bool:
    return type(a) is type(b) and isinstance(a, int | float | complex | str | bytes) and a == b


@dataclass(frozen=True, eq=False, repr=False)
class DeferredRule:
    """A rule that is traced when a transformation requests it: the base of such rules.

    The constants of a program are its arguments, fixed when the call is traced. So a value that
    the rule closes over must be one of ``consts``, which the function closes over, or an array of
    few elements, which becomes literals. Rules are equal where the same function is called in the
    same way, whatever their constants are: a program says which of them it uses.
    """

    fun: Callable[..., object]
    site: CallSite
    out_tree: PyTreeDef
    out_types: tuple[Type, ...]
    consts: tuple[Operand, ...]
    label: str

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeferredRule)
            and type(self) is type(other)
            and self.fun is other.fun
            and self.out_tree == other.out_tree
            and self.out_types == other.out_types
            and len(self.consts) == len(other.consts)
            and self.site.is_same_call(other.site)
        )

    def __hash__(self) -> int:
        return hash((type(self), id(self.fun), self.site.key, self.out_types))

    def traced(
        self,
        run: Callable[..., object],
        types: Sequence[Type],
        names: Sequence[str],
        what: str,
        outers: Sequence[object] | None = None,
    ) -> Jaxpr:
        """Trace ``run`` to a program over the constants, then inputs of these types.

        Raises BadRule where it closes over another value, or does not fit the function.
        """
        in_tree = tree.structure(((0,) * len(types), {}))
        try:
            options = TraceOptions(outers, captured=self.consts)
            flat = trace_flat(run, in_tree, types, names, what, options)
        except TransformError:
            raise
        except EffaxError as error:
            bad_rule = BadRule(error.what, error.expected, error.found, error.remedy)
            raise bad_rule.at(error.equation, raised_at(error) or error.source) from error
        return self.over_consts(flat, what)

    def over_consts(self, flat: FlatFunction, what: str) -> Jaxpr:
        """Replace further constants of the program by literals."""
        jaxpr, n, m = flat.jaxpr, len(self.consts), len(flat.consts)
        if n == m:
            return jaxpr
        b = Builder([*jaxpr.in_types[:n], *jaxpr.in_types[m:]])
        literals: list[Atom] = []
        for x in flat.consts[n:]:
            made = literal_array(b, x)
            if made is None:
                raise BadRule(
                    f"{what} closes over a value that {self.site.label} does not use",
                    expected=f"values that {self.site.label} closes over, arguments, or arrays "
                    f"of at most {MAX_LITERAL_ELEMENTS} elements",
                    found=str(x.type),
                    remedy="pass the value as an argument",
                )
            literals.append(made)
        outs = b.inline_jaxpr(jaxpr, [*b.binders[:n], *literals, *b.binders[n:]])
        return b.finish(outs, n, [*jaxpr.names[:n], *jaxpr.names[m:]])


MAX_LITERAL_ELEMENTS: Final = 256
"""The most elements of an array that become literals of a program, one by one."""


def literal_array(b: Builder, x: Operand) -> Atom | None:
    """Build a concrete array from literals; return None where it has too many elements."""
    if not isinstance(x, DeviceArray):
        return None
    value, scalar = x.numpy(), x.type.update(shape=())
    flat = value.reshape(-1)
    # Bytes are compared: zeros of both signs differ, and nan equals itself.
    same = flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size
    if same or flat.size == 0:
        element = lit(flat[0].item() if same else 0, scalar)
        return b(BroadcastInDim(value.shape, ()), element) if value.shape else element
    if flat.size > MAX_LITERAL_ELEMENTS:
        return None
    parts = [b(BroadcastInDim((1,), ()), lit(e.item(), scalar)) for e in flat]
    whole = b(Concatenate(0), *parts)
    return whole if value.ndim == 1 else b(Reshape(value.shape), whole)


def cast_result(value: object, type_: Type, what: str) -> Array:
    """Cast a result of a rule to the type of the function's. Raises IllTyped."""
    x = as_value(value, what)
    yields = x.weak_type and promotes_to(x.dtype, type_.dtype)
    if x.shape != type_.shape or (x.dtype != type_.dtype and not yields):
        raise IllTyped(f"{what} has the wrong type", expected=str(type_), found=str(x.type))
    return jnp.astype(x, type_.dtype)


def check_pair(result: object, what: str, pair: str) -> tuple[object, object]:
    """Return the two parts of a rule's result. Raises IllTyped where it is not a pair."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise IllTyped(
            f"{what} must return {pair}",
            expected="a pair",
            found=f"{type(result).__name__}: {result!r:.60}",
        )
    first, second = result
    return first, second
