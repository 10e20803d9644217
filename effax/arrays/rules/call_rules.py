"""The rules of a call: traced when a transformation asks for them, and kept.

A call holds its rules by reference: the user's Python functions, the types of the arguments, and
the values that all of them close over. A rule is traced once for each question; a rule that calls
its function records a call of the same rules, so that programs of recursive rules are finite.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pickle import PicklingError
from typing import Any, Final, TypeVar
from weakref import ref

import numpy as np

from effax import tree
from effax.arrays.binding import Operand, atom_in
from effax.arrays.config import config, enable_x64
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref
from effax.arrays.rules.call_site import SCALARS, CallSite, RuledFunction, is_same
from effax.arrays.rules.closed_over import closed_over
from effax.arrays.rules.values import NeedsValues, keeping_values, values_are_kept
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import FlatFunction, TraceOptions, shared_consts, trace_flat
from effax.ir.axes import Axes
from effax.ir.build import Builder
from effax.ir.edit.constants import constant
from effax.ir.errors import (
    BadRule,
    ConcretizationError,
    EffaxError,
    IllTyped,
    RefError,
    TransformError,
)
from effax.ir.primitive import ByReference, Owner
from effax.ir.recursion import carried
from effax.ir.source import raised_at
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.trace import Trace, identity, values_read
from effax.ir.types import RefType, Type
from effax.tree import PyTreeDef

T = TypeVar("T")
C = TypeVar("C", bound="CallRule")


MOST_KEPT: Final = 16
"""The most calls on different types that a function keeps from trace to trace."""


class CallRules(Owner):
    """A call of a function with rules, from which its rules are traced.

    Attributes:
        custom: the function with rules.
        functions: its rules when it was called.
        site: the call.
        programs: the programs of the function, over ``consts`` and the arguments.
        out_tree: the structure of the result.
        consts: the values that the function closes over, and those that its rules may use.
        outers: the references among the arguments, None for arrays.
        values: the values of the arguments where they were kept and are known; else None.
        on_values: whether Python may read values in the trace of the call.
        axes: the named axes in scope.
        checked: whether variance is tracked along some of these axes.
        memory: the calls of the outermost trace.
    """

    __slots__ = (
        "_asked",
        "_reached",
        "_tracing",
        "axes",
        "checked",
        "consts",
        "custom",
        "functions",
        "is_reusable",
        "memory",
        "on_values",
        "out_tree",
        "outers",
        "programs",
        "site",
        "values",
        "wide",
    )

    def __init__(
        self,
        custom: RuledFunction,
        site: CallSite,
        leaves: Sequence[Operand],
        trace: Trace,
        traced: Callable[[], Sequence[FlatFunction]],
    ) -> None:
        super().__init__()
        before = values_read()
        self.values: list[np.ndarray | None] | None = None
        if values_are_kept() and trace.on_values:
            self.values = [_known_value(x) for x in leaves]
        flats = traced()
        self.custom: RuledFunction = custom
        self.serial: int = custom.serial
        self.functions: tuple[object, ...] = custom.rule_functions()
        values, reached = closed_over(*self.functions, *site.fixed)
        consts, programs = shared_consts(flats, _captured(trace, values, leaves))
        self.programs: tuple[Jaxpr, ...] = tuple(programs)
        self.consts: tuple[Operand, ...] = tuple(consts)
        self.site: CallSite = site
        self.out_tree: PyTreeDef = flats[0].out_tree
        self.outers: list[Ref | None] = [x if isinstance(x, Ref) else None for x in leaves]
        self.on_values: bool = trace.on_values
        self.axes: Axes = tuple(trace.axes.values())
        self.checked: bool = bool(trace.checked)
        self.memory: dict[object, object] = trace.memory
        self.wide: bool = config.enable_x64
        self._reached: tuple[object, ...] = tuple(map(_marked, reached))
        self._asked: dict[object, object] = {}
        self._tracing: set[object] = set()
        # References are checked for aliases at each call, tracers belong to one trace, and a
        # trace that read values may be another one for other values.
        local = (Ref, TracedArray)
        self.is_reusable: bool = not (
            any(isinstance(x, Ref) for x in leaves)
            or any(isinstance(x, local) for x in consts)
            or values_read() != before
            or self.values is not None
        )

    @property
    def jaxpr(self) -> Jaxpr:
        """Return the first program: the function."""
        return self.programs[0]

    @property
    def out_types(self) -> tuple[Type, ...]:
        """Return the types of the results."""
        return self.jaxpr.out_types

    @property
    def has_refs(self) -> bool:
        """Return whether an argument is a reference."""
        return any(isinstance(t, RefType) for t in self.site.types)

    @property
    def n_consts(self) -> int:
        """Return the number of constants."""
        return len(self.consts)

    def known_arguments(self) -> list[object]:
        """Return the references and the kept values among the arguments; None for all others."""
        values = self.values or [None] * len(self.outers)
        return [v if r is None else r for r, v in zip(self.outers, values, strict=True)]

    def __deepcopy__(self, memo: dict[int, object]) -> CallRules:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        for x in self.consts:
            if not isinstance(x, DeviceArray):
                raise PicklingError(
                    f"the rules of {self.site.label} close over a value that is not known, so the "
                    f"call cannot be pickled: {x.type}"
                )
        return (_restored, ({name: getattr(self, name) for name in _PICKLED},))

    def is_for(self, custom: object, site: CallSite, trace: Trace) -> bool:
        """Return whether a call in ``trace`` applies the same rules to the same types."""
        return (
            self.custom is custom
            and self.wide == config.enable_x64
            and self.axes == tuple(trace.axes.values())
            and self.site.is_same_call(site)
            and all(map(is_same, self.functions, self.custom.rule_functions()))
        )

    def equals(self, other: CallRules) -> bool:
        """Return whether both calls have one program, and rules that refer to the same objects."""
        return (
            other.is_reusable
            and not other.consts
            and self.programs == other.programs
            and len(self._reached) == len(other._reached)
            and all(map(_is_marked_same, self._reached, other._reached))
        )

    def once(self, question: object, answer: Callable[[], T]) -> T:
        """Return the answer to a question, kept from the first time on."""
        if question not in self._asked:
            if question in self._tracing:
                raise TransformError(
                    f"a rule of {self.site.label} needs the derivative that it defines",
                    expected="a rule that calls its function, or derivatives of other functions",
                    found=f"a derivative of {self.site.label} inside of its own rule",
                    remedy="differentiate another function in the rule",
                )
            self._tracing.add(question)
            try:
                self._asked[question] = answer()
            finally:
                self._tracing.discard(question)
        return self._asked[question]  # type: ignore[return-value]  # of the same question

    def traced(
        self,
        run: Callable[..., object],
        types: Sequence[Type],
        names: Sequence[str],
        what: str,
        outers: Sequence[object],
    ) -> Jaxpr:
        """Trace ``run`` to a program over the constants, then inputs of these types.

        ``outers`` are the references passed for inputs, and kept values; each None if unknown.
        Raises BadRule where it closes over another traced value, or does not fit the function.
        """
        flat = self.flat(run, types, names, what, outers)
        return self.over_consts(flat, what)

    def flat(
        self,
        run: Callable[..., object],
        types: Sequence[Type],
        names: Sequence[str],
        what: str,
        outers: Sequence[object],
    ) -> FlatFunction:
        """Trace ``run``; its first constants are those of the call."""
        known = [x is not None and not isinstance(x, Ref) for x in outers]
        options = TraceOptions(
            outers,
            on_values=known,
            binds=self.axes,
            captured=self.consts,
            checked=self.checked,
            memory=self.memory,
        )
        in_tree = tree.structure(((0,) * len(types), {}))
        # A rule runs in the setting of the call.
        wide = enable_x64(self.wide) if self.wide != config.enable_x64 else nullcontext()
        with _innermost(self), keeping_values(self.values is not None), wide:
            try:
                return trace_flat(run, in_tree, types, names, what, options)
            except ConcretizationError as error:
                if self.on_values and self.values is None:
                    raise NeedsValues from None
                error.in_rule = True
                raise
            except IllTyped as error:
                if isinstance(error, TransformError | RefError):
                    error.in_rule = True
                    raise
                bad_rule = BadRule(error.what, error.expected, error.found, error.remedy)
                raise bad_rule.at(error.equation, raised_at(error) or error.source) from error
            except EffaxError as error:
                error.in_rule = True
                raise

    def over_consts(self, flat: FlatFunction, what: str) -> Jaxpr:
        """Return the program over the constants of the call: further ones become equations."""
        jaxpr, n, m = flat.jaxpr, len(self.consts), len(flat.consts)
        if n == m:
            return jaxpr
        b = Builder([*jaxpr.in_types[:n], *jaxpr.in_types[m:]])
        further: list[Atom] = []
        for x in flat.consts[n:]:
            if not isinstance(x, DeviceArray):
                raise BadRule(
                    f"{what} closes over a value that is not known to {self.site.label}",
                    expected=f"arguments, or values that {self.site.label} or the closure of the "
                    "rule refers to",
                    found=str(x.type),
                    remedy="pass the value as an argument",
                )
            further.append(constant(b, x.numpy(), x.type))
        outs = b.inline_jaxpr(jaxpr, [*b.binders[:n], *further, *b.binders[n:]])
        return b.finish(outs, n, [*jaxpr.names[:n], *jaxpr.names[m:]])


_PICKLED: Final = (
    "axes",
    "checked",
    "consts",
    "custom",
    "is_reusable",
    "on_values",
    "out_tree",
    "programs",
    "site",
    "values",
    "wide",
)


def _restored(state: Mapping[str, object]) -> CallRules:
    """Return a call that was pickled, whose rules are those that its function has now."""
    call = object.__new__(CallRules)
    Owner.__init__(call)
    for name, value in state.items():
        setattr(call, name, value)
    call.serial = call.custom.serial
    call.functions = call.custom.rule_functions()
    call.outers = [None] * len(call.site.types)
    call.memory, call._asked, call._tracing = {}, {}, set()
    _, reached = closed_over(*call.functions, *call.site.fixed)
    call._reached = tuple(map(_marked, reached))
    return _of_earlier_trace(call) if call.is_reusable else call


class CallRule(ByReference):
    """A rule of a call: a frozen dataclass with the call among its fields.

    It is pickled by the parts of the call, so that it is restored once for a call.
    """

    __slots__ = ()

    call: CallRules

    def owner(self) -> Owner:
        return self.call

    def __reduce__(self) -> tuple[object, ...]:
        own: Any = self
        return (rule_of, (type(self), *[getattr(self, f.name) for f in fields(own)]))


def rule_of(kind: Callable[..., C], call: CallRules, *parts: object) -> C:
    """Return the rule of this kind of a call, made of ``parts`` when it is first asked for."""
    return call.once(kind, lambda: kind(call, *parts))


class _State(threading.local):
    def __init__(self) -> None:
        self.tracing: tuple[CallRules, ...] = ()


_state = carried(_State())


@contextmanager
def _innermost(call: CallRules) -> Iterator[None]:
    before, _state.tracing = _state.tracing, (call, *_state.tracing)
    try:
        yield
    finally:
        _state.tracing = before


def is_fixed(x: object) -> bool:
    """Return whether ``x`` is a nondifferentiable argument of a call whose rule is traced."""
    return any(x is leaf for call in _state.tracing for leaf in tree.leaves(call.site.fixed))


def call_rules(
    custom: RuledFunction,
    site: CallSite,
    leaves: Sequence[Operand],
    trace: Trace,
    traced: Callable[[], Sequence[FlatFunction]],
) -> CallRules:
    """Return the rules of a call: those of an equal call of the outermost trace, or new ones.

    Args:
        custom: the function.
        site: the call.
        leaves: the arguments.
        trace: the current trace.
        traced: traces the programs of the function.
    """
    if not values_are_kept():
        for around in _state.tracing:
            # A rule calls its function: its constants are those of the rule.
            if around.is_for(custom, site, trace) and not around.has_refs:
                return around
    known = trace.memory.setdefault(custom, [])
    assert isinstance(known, list)
    for call in known:
        if isinstance(call, CallRules) and call.is_for(custom, site, trace):
            return call
    made = CallRules(custom, site, leaves, trace, traced)
    if made.is_reusable:
        made = _of_earlier_trace(made)
        known.append(made)
    return made


def _of_earlier_trace(made: CallRules) -> CallRules:
    """Return the rules of an equal call of an earlier trace; the function keeps one for types.

    So equal traces return equal programs, and the caches of passes know them.
    """
    if made.consts or not all(isinstance(x, SCALARS) for x in made.site.fixed):
        return made
    kept = made.custom.kept
    for i, call in enumerate(kept):
        if call.wide == made.wide and call.axes == made.axes and call.site.is_same_call(made.site):
            if all(map(is_same, call.functions, made.functions)) and call.equals(made):
                return call
            kept[i] = made
            return made
    kept.insert(0, made)
    del kept[MOST_KEPT:]
    return made


def _known_value(x: Operand) -> np.ndarray | None:
    try:
        return None if isinstance(x, Ref) else np.asarray(atom_value(x))
    except ConcretizationError:
        return None


def atom_value(x: Operand) -> np.ndarray:
    """Return the value of an array operand. Raises ConcretizationError."""
    if isinstance(x, TracedArray):
        return x.owner.value_of(x.atom)
    return np.asarray(x)


def _captured(trace: Trace, values: Sequence[object], leaves: Sequence[Operand]) -> list[Operand]:
    """Return the values that can be arguments of a call in ``trace``, beside its arguments."""
    passed = {identity(x) for x in leaves if isinstance(x, Ref)}
    found: list[Operand] = []
    for x in values:
        if not isinstance(x, TracedArray | DeviceArray | Ref) or identity(x) in passed:
            continue
        try:
            atom = atom_in(trace, x)
        except EffaxError:
            # Of a trace that has ended, or a reference that has: an error if a rule uses it.
            continue
        if isinstance(atom.type, RefType) or not isinstance(x, Ref):
            found.append(x)
    return found


def _marked(x: object) -> object:
    """Return a mark of an object that does not keep it alive where that can be avoided."""
    if isinstance(x, SCALARS):
        return x
    if isinstance(x, tuple | list | dict):
        return (type(x), len(x))
    try:
        return ref(x)
    except TypeError:
        return x


def _is_marked_same(a: object, b: object) -> bool:
    if isinstance(a, ref) and isinstance(b, ref):
        found = a()
        return found is not None and found is b()
    return is_same(a, b) or (isinstance(a, tuple) and isinstance(b, tuple) and a == b)
