"""Tracing: the one place where Python callables become programs.

A ``Trace`` collects the equations of one program. Meanwhile user code handles ``Tracer`` objects of
the front door (arrays and references with operators), which the trace makes through its
``Handles``. A value of outside that user code uses is captured: a constant of the program.

A trace on concrete values (under ``grad`` outside of ``jit``, say) computes a tracer's value when
Python needs it: it evaluates the equations so far on copies of the references.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np

from effax.effects import Rule
from effax.ir.analysis.changes import ReferenceChanges
from effax.ir.analysis.variance import SAME, Following, Names
from effax.ir.axes import Axes, Axis
from effax.ir.build import Builder, typing_of
from effax.ir.edit.renumber import numbered
from effax.ir.edit.without_io import without_io
from effax.ir.errors import BadArgument, ConcretizationError, LeakedTracer, RefError
from effax.ir.eval.numpy import literal_value
from effax.ir.primitive import Primitive, Value
from effax.ir.recursion import carried
from effax.ir.source import SavedSource, Source, caller
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type


class Tracer(Protocol):
    """The part of a handle that a trace uses."""

    @property
    def owner(self) -> Trace: ...

    @property
    def atom(self) -> Atom: ...


Handles = Callable[["Trace", Atom], object]
"""Returns the handle of an atom of a trace: an array or a reference."""

ValueOf = Callable[[], Value]
"""Returns a concrete value. Raises ConcretizationError."""


class Capture(NamedTuple):
    """A value from outside of a trace that its program uses."""

    outer: object
    var: Var
    value: ValueOf


class Traced(NamedTuple):
    """A finished trace: the program, and the values of its first ``n_consts`` binders."""

    jaxpr: Jaxpr
    consts: tuple[object, ...]


class _State(threading.local):
    current: Trace | None = None
    n_read: int = 0
    scopes: tuple[str, ...] = ()


_state = carried(_State())


def current_trace() -> Trace | None:
    """Return the innermost trace of this thread that is being built."""
    return _state.current


def values_read() -> int:
    """Return how many values Python code has read; a program may be valid for these only."""
    return _state.n_read


class Trace:
    """A program that is being traced.

    Attributes:
        label: the traced function, for messages: ``jit``, ``the body of scan``, ...
        parent: the enclosing trace.
        builder: collects the equations.
        axes: the named axes in scope, by name: those that it binds, and its parent's.
        changes: the changes of references so far.
        checked: the names of the axes along which variance is checked.
        alive: false once the program is finished; a later use of its tracers is a leak.
        consumed: the operation that consumed a reference, by the number of its variable.
        on_values: whether Python may read values; not while a program is traced for compilation.
        folds: whether operations on concrete values run at once, and add no equation.
        hoists: whether literals of enclosing traces become constants, so that closing over a value
            and over a literal yield programs of one signature.
        memory: what is kept as long as the outermost trace, which nested traces share.
    """

    __slots__ = (
        "__weakref__", "_captures", "_differs", "_input_names", "_inputs", "_known",
        "_n_evaluated", "_origins", "_values", "alive", "axes", "builder", "changes", "checked",
        "consumed", "folds", "handles", "hoists", "label", "memory", "names", "on_values", "parent",
    )  # fmt: skip

    def __init__(
        self,
        handles: Handles,
        label: str,
        parent: Trace | None,
        on_values: bool = False,
        binds: Axes = (),
        checked: bool = False,
    ) -> None:
        self.handles: Handles = handles
        self.label: str = label
        self.parent: Trace | None = parent
        self.on_values: bool = on_values
        self.folds: bool = False
        self.hoists: bool = False
        self.memory: dict[object, object] = {} if parent is None else parent.memory
        self.axes: Mapping[str, Axis] = {} if parent is None else parent.axes
        if binds:
            self.axes = {**self.axes, **{axis.name: axis for axis in binds}}
        self.checked: Names = SAME if parent is None else parent.checked
        if checked:
            self.checked |= {axis.name for axis in binds}
        self._differs = Following()
        self.builder: Builder = Builder()
        self.consumed: dict[int, str] = {}
        self.alive: bool = True
        self.names: list[str] = []
        self._captures: dict[int, Capture] = {}
        self._inputs: dict[int, tuple[object, int]] = {}
        self._known: list[tuple[Var, ValueOf]] = []
        self._values: dict[int, Value] = {}
        self._n_evaluated = 0
        # The sources of references of this trace, and the number of equations searched for them.
        self._input_names: dict[int, str] = {}
        self._origins: tuple[dict[int, Source | SavedSource | None], int] = ({}, 0)
        self.changes: ReferenceChanges = ReferenceChanges()

    def bind(
        self,
        type_: Type,
        outer: object = None,
        name: str = "",
        value: ValueOf | None = None,
        differs: Names | None = None,
    ) -> object:
        """Return the handle of a new input.

        Args:
            type_: the input's type.
            outer: the passed value, for references, so that aliases are detected.
            name: the user's name of it.
            value: returns its value, for a trace on values.
            differs: the checked axes along which it may differ; by default those of ``outer``, or
                all if there is no ``outer``.

        Raises:
            RefError: another input is the same reference.
        """
        var = self.builder.bind(type_)
        self.names.append(name)
        if isinstance(type_, RefType) and outer is not None:
            key = identity(outer)
            if key in self._inputs:
                first = self.names[self._inputs[key][1]]
                raise alias_error(
                    f"{self.label} gets one reference as {first} and as {name}", outer
                )
            self._inputs[key] = (outer, len(self.names) - 1)
        if value is not None:
            self._known.append((var, value))
        if self.checked:
            if differs is None:
                differs = self.checked if outer is None else differs_along(outer)
            self._differs.begin(var, differs, isinstance(type_, RefType) and is_shared(outer))
        return self.handles(self, var)

    def capture(self, outer: object, type_: Type, value: ValueOf) -> Var:
        """Return the constant for a value from outside, one for each distinct value.

        Raises:
            RefError: an input is the same reference.
        """
        key = identity(outer)
        found = self._captures.get(key)
        if found is not None:
            return found.var
        if key in self._inputs:
            name = self.names[self._inputs[key][1]]
            raise alias_error(f"{self.label} gets a reference as {name} and closes over it", outer)
        var = self.builder.fresh(type_)
        self._captures[key] = Capture(outer, var, value)
        self._known.append((var, value))
        if self.checked:
            shared = isinstance(type_, RefType) and is_shared(outer)
            self._differs.begin(var, differs_along(outer), shared)
        return var

    def lift(self, tracer: Tracer) -> Atom:
        """Return the atom of a tracer in this trace; tracers of enclosing traces are captured.

        Raises:
            LeakedTracer: the tracer's trace has ended, or does not enclose this one.
        """
        home = tracer.owner
        if home is self and home.alive:
            return tracer.atom
        if not self._reaches(tracer):
            raise leak_error(tracer)
        atom = tracer.atom
        if isinstance(atom, Lit) and not self._hoists_from(home):
            return atom
        return self.capture(tracer, atom.type, lambda: home.value_of(atom))

    def _reaches(self, tracer: Tracer) -> bool:
        """Return whether this trace or an enclosing one is the tracer's, or captured it already."""
        home, key = tracer.owner, identity(tracer)
        trace: Trace | None = self
        while trace is not None and not (trace is home and home.alive):
            if key in trace._captures:
                return True
            trace = trace.parent
        return trace is not None

    def _hoists_from(self, home: Trace) -> bool:
        """Return whether this trace or one between it and an enclosing one hoists literals."""
        trace: Trace | None = self
        while trace is not None and trace is not home:
            if trace.hoists:
                return True
            trace = trace.parent
        return False

    def emit(self, prim: Primitive, ins: tuple[Atom, ...]) -> tuple[Var, ...]:
        """Append an equation, with the user's line as its source."""
        outs, effects = typing_of(prim, tuple([a.type for a in ins]))
        return self.builder.emit_typed(prim, ins, outs, effects, caller(_state.scopes))

    def differs(self, atom: Atom) -> Names:
        """Return the checked axes along which a value of this trace may differ."""
        if isinstance(atom, Lit) or not self.checked:
            return SAME
        return self._differs.of(atom, self.builder.eqns, self.builder.next_id)

    def definition(self, atom: Atom) -> Source | SavedSource | None:
        """Return the user's line that made a value of this trace, or that of the passed input."""
        if isinstance(atom.type, RefType):
            return self._origin(atom)
        return next((eqn.source for eqn in self.builder.eqns if atom in eqn.outs), None)

    def input_name(self, var: Var) -> str:
        """Return the user's name of an input; empty if it has none, or is not an input."""
        binders, names = self.builder.binders, self._input_names
        if len(names) < len(binders):
            names.update(zip([v.id for v in binders], self.names, strict=True))
        return names.get(var.id, "")

    def _origin(self, ref: Atom) -> Source | SavedSource | None:
        """Return the :meth:`definition` of a reference; each equation is searched once."""
        found, searched = self._origins
        for eqn in self.builder.eqns[searched:]:
            found.update({v.id: eqn.source for v in eqn.outs if isinstance(v.type, RefType)})
        self._origins = (found, len(self.builder.eqns))
        if isinstance(ref, Var) and ref.id in found:
            return found[ref.id]
        for outer, index in self._inputs.values():
            if self.builder.binders[index] == ref:
                return made_at(outer)
        for capture in self._captures.values():
            if capture.var == ref:
                return made_at(capture.outer)
        return None

    def end(self) -> None:
        """End the trace and drop its values, which a leaked tracer must not keep alive."""
        self.alive = False
        self._known.clear()
        self._values.clear()

    def finish(self, outs: Sequence[Atom], out_names: Sequence[str] = ()) -> Traced:
        """End the trace. Captures become the program's first binders, in order of capture."""
        self.end()
        builder = self.builder
        captures = list(self._captures.values())
        eqns = self.changes.used(builder.eqns, outs)
        if not captures and len(eqns) == len(builder.eqns):
            return Traced(builder.finish(outs, 0, self.names, out_names), ())
        names = [_capture_name(c) for c in captures] + self.names
        binders = [*(c.var for c in captures), *builder.binders]
        n, size = len(captures), builder.next_id
        jaxpr = numbered(binders, eqns, outs, size, n, names, out_names)
        # Errors about leaks look up captured references only; arrays are not kept alive.
        kept = {k: c for k, c in self._captures.items() if isinstance(c.var.type, RefType)}
        self._captures = kept
        return Traced(jaxpr, tuple(c.outer for c in captures))

    def value_of(self, atom: Atom) -> Value:
        """Return the value of an atom, by evaluating the equations so far.

        Raises:
            ConcretizationError: it depends on an input without a known value.
            LeakedTracer: the trace has ended.
        """
        if isinstance(atom, Lit):
            return literal_value(atom)
        if not self.alive:
            raise _leak(self, atom)
        if self.on_values and not isinstance(atom.type, RefType):
            self._evaluate_so_far()
            found = self._values.get(atom.id)
            if found is not None:
                _state.n_read += 1
                return found
        names = self._inputs_of(atom)
        raise ConcretizationError(
            f"the value of this {atom.type} is not known while {self.label} is traced",
            expected="a value that depends on nothing traced" if names else None,
            found=f"one that depends on {', '.join(names)}" if names else None,
            remedy="use `lax.cond`, `lax.while_loop` or `numpy.where` instead of Python control "
            "flow, or make the argument static (`static_argnums`)",
            source=str(caller()),
        )

    def _inputs_of(self, atom: Atom) -> list[str]:
        """Return the user's names of the inputs that a value depends on."""
        needed = {atom.id} if isinstance(atom, Var) else set()
        for eqn in reversed(self.builder.eqns):
            if any(v.id in needed for v in eqn.outs):
                needed.update(a.id for a in eqn.ins if isinstance(a, Var))
        named = zip(self.builder.binders, self.names, strict=True)
        return [name for v, name in named if v.id in needed and name]

    def _evaluate_so_far(self) -> None:
        values = self._values
        for var, value in self._known:
            try:
                known = value()
            except ConcretizationError:
                continue
            values[var.id] = np.array(known) if isinstance(var.type, RefType) else known
        self._known.clear()
        eqns = self.builder.eqns
        with np.errstate(all="ignore"):
            for i in range(self._n_evaluated, len(eqns)):
                self._evaluate_one(eqns[i])
        self._n_evaluated = len(eqns)

    def _evaluate_one(self, eqn: Eqn) -> None:
        values = self._values
        # Side effects happen when the program runs, not while it is traced.
        quiet = without_io(eqn)
        args = [literal_value(a) if isinstance(a, Lit) else values.get(a.id) for a in eqn.ins]
        if quiet is None or any(a is None for a in args) or eqn.prim.free_axes():
            # The equation may write unknown values, so the contents are unknown from here on.
            for effect_ref in eqn.effects.refs:
                touched = eqn.ins[effect_ref]
                if isinstance(touched, Var):
                    values.pop(touched.id, None)
            return
        results = quiet.prim.evaluate(*[a for a in args if a is not None])
        for v, result in zip(eqn.outs, results, strict=True):
            values[v.id] = result


def differs_along(outer: object) -> Names:
    """Return the checked axes along which a value from outside may differ; none for a constant."""
    home, atom = getattr(outer, "owner", None), getattr(outer, "atom", None)
    return home.differs(atom) if isinstance(home, Trace) and isinstance(atom, Var) else SAME


def is_shared(ref: object) -> bool:
    """Return whether a reference is from outside of every program whose devices are checked."""
    home = getattr(ref, "owner", None)
    return ref is not None and not (isinstance(home, Trace) and home.checked)


def identity(outer: object) -> int:
    """Return the identity of a handle; two handles of one reference's cell are aliases."""
    cell = getattr(outer, "cell_identity", None)
    return id(outer) if cell is None else cell()


def _capture_name(capture: Capture) -> str:
    """Return the name of a captured reference: its name in the trace that it is from, if any."""
    if not isinstance(capture.var.type, RefType):
        return ""
    return _input_name(capture.outer) or "a closed-over reference"


def _input_name(ref: object) -> str:
    """Return the user's name of a reference that is an input of its trace; else empty."""
    home, atom = getattr(ref, "owner", None), getattr(ref, "atom", None)
    return home.input_name(atom) if isinstance(home, Trace) and isinstance(atom, Var) else ""


def shown_ref(ref: object) -> str:
    """Return a reference as text for messages: the user's name, the type, the line that made it."""
    shown = str(getattr(ref, "type", type(ref).__name__))
    name = _input_name(ref)
    if name:
        shown = f"{name}, {shown}"
    where = made_at(ref)
    return shown if where is None else f"{shown}, made at {where}"


def alias_error(what: str, ref: object) -> RefError:
    """Return the error for a reference that is passed twice, or passed and captured."""
    return RefError.against(Rule.ALIAS, what, "each reference once", shown_ref(ref))


def leak_error(tracer: Tracer) -> LeakedTracer:
    """Return the error for a tracer that is used where its trace has ended."""
    return _leak(tracer.owner, tracer.atom)


def _leak(trace: Trace, atom: Atom) -> LeakedTracer:
    made = trace.definition(atom)
    where = "which has ended" if not trace.alive else "which does not enclose its use"
    return LeakedTracer(
        f"a value of type {atom.type} escaped from {trace.label}, {where}",
        expected="values that leave a traced function to be among its results",
        found="a tracer that was kept by a side effect (a global, an attribute, a list)",
        remedy="return the value instead, or keep it in a `Ref`",
        source=None if made is None else f"it was made at {made}",
    )


def made_at(outer: object) -> Source | SavedSource | None:
    """Return the source of a value from outside of a trace, if it is known."""
    home, atom = getattr(outer, "owner", None), getattr(outer, "atom", None)
    if isinstance(home, Trace) and isinstance(atom, Var):
        return home.definition(atom)
    return getattr(outer, "made_at", None)


class tracing:  # noqa: N801  # used as a function; a generator would cost more than the block
    """Make ``trace`` the current one until the block ends."""

    __slots__ = ("before", "trace")

    def __init__(self, trace: Trace) -> None:
        self.trace: Trace = trace

    def __enter__(self) -> Trace:
        self.before: Trace | None = _state.current
        _state.current = self.trace
        return self.trace

    def __exit__(self, *_: object) -> None:
        _state.current = self.before
        self.trace.end()


@contextmanager
def eager() -> Iterator[None]:
    """Run a block outside of every trace, so that its operations run at once.

    An operation on a tracer without a value raises LeakedTracer in the block.
    """
    before = _state.current
    _state.current = None
    try:
        yield
    finally:
        _state.current = before


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Add ``name`` to the name stack of equations traced in the block. Raises BadArgument."""
    if not isinstance(name, str):
        raise BadArgument(
            "named_scope takes a name",
            expected="a string",
            found=f"{type(name).__name__}: {name!r:.60}",
        )
    with scopes_set((*_state.scopes, name)):
        yield


@contextmanager
def scopes_set(names: tuple[str, ...] | None = None) -> Iterator[tuple[str, ...]]:
    """Set the name stack of the block, unless it is None, and yield the one before."""
    before = _state.scopes
    _state.scopes = before if names is None else names
    try:
        yield before
    finally:
        _state.scopes = before
