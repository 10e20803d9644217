"""A transient builder of programs, and templates: small programs prepared for inlining.

The builder is the one mutable object of the core. It does not outlive the function that creates
it: :meth:`Builder.finish` freezes the equations into a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, cast

import numpy as np

from effax.effects import ArgIndex, Row
from effax.ir.argument_checks import check_atoms, check_parts, check_type
from effax.ir.dtypes import family, is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive, Typing
from effax.ir.regions.forms import check_fields, region_effects
from effax.ir.source import SavedSource, Source
from effax.ir.state import cached
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Scalar, Var
from effax.ir.types import ArrayType, RefType, Type, array_type

Where = Source | SavedSource | None

# `tuple.__new__` builds a named tuple twice as fast as a call with its fields.
new_var: Final = cast("Callable[[tuple[int, Type]], Var]", partial(tuple.__new__, Var))
"""Return the variable of ``(id, type)``."""

new_eqn: Final = cast(
    "Callable[[tuple[Primitive, tuple[Atom, ...], tuple[Var, ...], Row[ArgIndex], Where]], Eqn]",
    partial(tuple.__new__, Eqn),
)
"""Return the equation of ``(prim, ins, outs, effects, source)``."""


@cached(maxsize=1 << 16)
def _cached_typing(prim: Primitive, types: tuple[Type, ...]) -> Typing:
    check_fields(prim)
    return prim.typing(*types)


def typing_of(prim: Primitive, types: tuple[Type, ...]) -> Typing:
    """Return the typing of an application, cached unless the primitive has subjaxprs or objects.

    The effects of regions are among its effects, whether or not the typing rule returns them.

    Raises:
        IllTyped: the arguments do not match.
        BadRule: a subjaxpr has effects, and no region declares on which arguments.
    """
    if not prim.by_reference and not prim.subjaxprs():
        return _cached_typing(prim, types)
    found = prim.typing(*types)
    nested = region_effects(prim)
    if not nested.effects or nested == found.effects:
        return found
    return found._replace(effects=found.effects.join(nested))


class TemplateEqn(NamedTuple):
    """One equation of a template; ``slots`` index the template's environment."""

    prim: Primitive
    slots: tuple[int, ...]
    out_types: tuple[Type, ...]
    effects: Row[ArgIndex]


class Template(NamedTuple):
    """A program prepared for inlining; its environment is arguments, literals, then results."""

    lits: tuple[Lit, ...]
    steps: tuple[TemplateEqn, ...]
    outs: tuple[int, ...]


def template(jaxpr: Jaxpr) -> Template:
    """Prepare ``jaxpr`` for repeated inlining."""
    lits: dict[Lit, int] = {}
    atoms = [a for eqn in jaxpr.eqns for a in eqn.ins] + list(jaxpr.outs)
    for atom in atoms:
        if isinstance(atom, Lit):
            lits.setdefault(atom, len(jaxpr.binders) + len(lits))
    slots = {v.id: i for i, v in enumerate(jaxpr.binders)}
    top = len(jaxpr.binders) + len(lits)

    def slot(atom: Atom) -> int:
        return lits[atom] if isinstance(atom, Lit) else slots[atom.id]

    steps = []
    for eqn in jaxpr.eqns:
        steps.append(
            TemplateEqn(
                eqn.prim, tuple(map(slot, eqn.ins)), tuple(v.type for v in eqn.outs), eqn.effects
            )
        )
        for v in eqn.outs:
            slots[v.id] = top
            top += 1
    return Template(tuple(lits), tuple(steps), tuple(map(slot, jaxpr.outs)))


class Builder:
    """A builder of one program: bind inputs, emit equations, finish."""

    __slots__ = ("_makers", "_seen", "binders", "eqns", "next_id")

    next_id: int

    def __init__(self, in_types: Iterable[Type] = ()) -> None:
        """Begin a program with inputs of these types. Raises BadArgument."""
        self.eqns: list[Eqn] = []
        self.binders: list[Var] = []
        self.next_id = 0
        # The index of the equation that binds a variable, for the first ``_seen`` equations.
        self._makers: dict[int, int] = {}
        self._seen = 0
        several: object = in_types
        if not isinstance(several, Iterable):
            raise BadArgument(
                "a builder takes the types of inputs", "a list of types", f"{several!r:.80}"
            )
        for type_ in in_types:
            self.bind(type_)

    def fresh(self, type_: Type) -> Var:
        """Return a new variable, numbered next."""
        v: Var = new_var((self.next_id, type_))
        self.next_id += 1
        return v

    def bind(self, type_: Type) -> Var:
        """Return a new input of the program. Raises BadArgument unless ``type_`` is a type."""
        check_type(type_)
        v = self.fresh(type_)
        self.binders.append(v)
        return v

    def emit(self, prim: Primitive, ins: Sequence[Atom], source: Where = None) -> tuple[Var, ...]:
        """Append an equation.

        Raises:
            IllTyped: the arguments do not fit.
            BadArgument: ``prim`` is not a primitive, or an argument is not an atom.
        """
        given = ins
        try:
            ins = tuple(given)
            outs, effects = typing_of(prim, tuple([a.type for a in ins]))
        except (AttributeError, TypeError):
            # Checked only after a failure: emit is a hot path.
            check_parts(prim, given)
            raise
        return self.emit_typed(prim, ins, outs, effects, source)

    def equation_of(self, atom: Atom) -> Eqn | None:
        """Return the equation that binds a variable; None for an input or a literal.

        ::

            match b.equation_of(x):
                case Eqn(prim=Neg(), ins=(y,)):  # x is -y
                    ...
        """
        if isinstance(atom, Lit):
            return None
        at = self._makers.get(atom.id)
        if at is None or at >= len(self.eqns) or atom not in self.eqns[at].outs:
            # Not indexed yet; or equations were removed and others appended.
            start = self._seen if at is None and self._seen <= len(self.eqns) else 0
            for i in range(start, len(self.eqns)):
                self._makers.update((v.id, i) for v in self.eqns[i].outs)
            self._seen = len(self.eqns)
            at = self._makers.get(atom.id)
        found = None if at is None or at >= len(self.eqns) else self.eqns[at]
        return found if found is not None and atom in found.outs else None

    def emit_typed(
        self,
        prim: Primitive,
        ins: tuple[Atom, ...],
        out_types: tuple[Type, ...],
        effects: Row[ArgIndex],
        source: Where = None,
    ) -> tuple[Var, ...]:
        """Append an equation whose typing the caller knows."""
        n = self.next_id
        if len(out_types) == 1:
            outs: tuple[Var, ...] = (new_var((n, out_types[0])),)
            self.next_id = n + 1
        else:
            outs = tuple([new_var((n + i, t)) for i, t in enumerate(out_types)])
            self.next_id = n + len(out_types)
        self.eqns.append(new_eqn((prim, ins, outs, effects, source)))
        return outs

    def emit_like(self, eqn: Eqn, ins: tuple[Atom, ...]) -> tuple[Var, ...]:
        """Append the application of an equation to other operands, of the same types."""
        prim, _, outs, effects, source = eqn
        n = self.next_id
        if len(outs) == 1:
            made: tuple[Var, ...] = (new_var((n, outs[0].type)),)
        else:
            made = tuple([new_var((n + i, v.type)) for i, v in enumerate(outs)])
        self.next_id = n + len(made)
        self.eqns.append(new_eqn((prim, ins, made, effects, source)))
        return made

    def __call__(self, prim: Primitive, *ins: Atom) -> Var:
        """Append an equation of one result and return that result.

        Raises:
            IllTyped: the arguments do not fit.
            BadArgument: as for ``emit``; or the equation has no result, or several.
        """
        outs = self.emit(prim, ins)
        if len(outs) != 1:
            self.eqns.pop()
            self.next_id -= len(outs)
            raise BadArgument(
                f"{prim.name} does not return one result",
                expected="a primitive of one result",
                found=f"{len(outs)} results",
                remedy="`b.emit(prim, ins)` returns a tuple of all",
            )
        return outs[0]

    def inline(self, body: Template, args: Sequence[Atom], source: Where = None) -> list[Atom]:
        """Append the template's equations on these arguments; return its results."""
        env: list[Atom] = [*args, *body.lits]
        push = env.append
        append = self.eqns.append
        n = self.next_id
        for prim, slots, out_types, effects in body.steps:
            # Most applications have one or two arguments, and one result.
            if len(slots) == 2:
                i, j = slots
                ins: tuple[Atom, ...] = (env[i], env[j])
            elif len(slots) == 1:
                ins = (env[slots[0]],)
            else:
                ins = tuple([env[s] for s in slots])
            if len(out_types) == 1:
                v = new_var((n, out_types[0]))
                n += 1
                push(v)
                outs: tuple[Var, ...] = (v,)
            else:
                outs = tuple([new_var((n + i, t)) for i, t in enumerate(out_types)])
                n += len(out_types)
                env.extend(outs)
            append(new_eqn((prim, ins, outs, effects, source)))
        self.next_id = n
        return [env[s] for s in body.outs]

    def inline_jaxpr(self, jaxpr: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
        """Append a program's equations on these arguments; each keeps its source.

        An argument that differs from the program's input in weakness is converted, since the
        equations are typed for the inputs.
        """
        env = cast("list[Atom]", [None] * jaxpr.size)  # None is never read: bound before use
        for v, a in zip(jaxpr.binders, args, strict=True):
            env[v.id] = a if a.type is v.type else self.fitted(a, v.type)
        self.replay(jaxpr.eqns, env)
        return [a if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs]

    def fitted(self, atom: Atom, type_: Type) -> Atom:
        """Return an atom as one of a type of another weakness."""
        have = atom.type
        if not isinstance(have, ArrayType) or not isinstance(type_, ArrayType):
            return atom
        if have.weak == type_.weak:
            return atom
        if isinstance(atom, Lit):
            return Lit(atom.value, type_)
        # Imported late: primitives import this room.
        from effax.ir.prims.convert import ConvertElementType

        return self(ConvertElementType(type_.dtype, type_.weak), atom)

    def replay(self, eqns: Iterable[Eqn], env: list[Atom]) -> None:
        """Append equations of another program; each keeps its source.

        Args:
            eqns: the equations.
            env: the atom of each variable of that program, by number; those that the equations
                bind are added.
        """
        n = self.next_id
        append = self.eqns.append
        for prim, ins, outs, effects, source in eqns:
            # Most equations have one or two arguments, and one result.
            if len(ins) == 2:
                a, b = ins
                if type(a) is not Lit:
                    a = env[a.id]
                if type(b) is not Lit:
                    b = env[b.id]
                new_ins: tuple[Atom, ...] = (a, b)
            else:
                new_ins = tuple([a if type(a) is Lit else env[a.id] for a in ins])
            if len(outs) == 1:
                old, type_ = outs[0]
                v: Var = new_var((n, type_))
                n += 1
                env[old] = v
                new_outs: tuple[Var, ...] = (v,)
            else:
                new_outs = tuple([new_var((n + i, v.type)) for i, v in enumerate(outs)])
                n += len(outs)
                for old_v, v in zip(outs, new_outs, strict=True):
                    env[old_v.id] = v
            append(new_eqn((prim, new_ins, new_outs, effects, source)))
        self.next_id = n

    def finish(
        self,
        outs: Sequence[Atom],
        n_consts: int = 0,
        names: Sequence[str] = (),
        out_names: Sequence[str] = (),
    ) -> Jaxpr:
        """Freeze the equations into a program with these results.

        Raises BadArgument unless the results are variables and literals.
        """
        given: object = outs
        if isinstance(given, Var) or not all(type(a) in _ATOMS for a in outs):
            check_atoms(given)
        return Jaxpr(self.binders, self.eqns, outs, n_consts, names, out_names)


_ATOMS: Final = (Var, Lit)
_TYPES: Final = (ArrayType, RefType)


def lit(value: Scalar, type_: Type) -> Lit:
    """Return a scalar literal in the dtype of ``type_``.

    Raises:
        IllTyped: the number is complex, and the dtype is not.
        BadArgument: ``value`` is not a Python number, or ``type_`` is not a type.
    """
    _check_literal(value, type_)
    dtype = type_.dtype
    if isinstance(value, complex) and value.imag and not is_complex(dtype):
        raise IllTyped("a complex literal in a real dtype", expected=str(dtype), found=repr(value))
    match family(dtype):
        case "bool":
            value = bool(value)
        case "int" | "uint" | "key":
            value = int(value.real)
        case "complex":
            value = complex(value)
        case _:
            value = float(value.real)
    weak = type_.weak if isinstance(type_, ArrayType) else False
    return Lit(value, array_type((), dtype, weak))


def _check_literal(value: object, type_: object) -> None:
    if isinstance(value, (bool, int, float, complex, np.generic)) and isinstance(type_, _TYPES):
        return
    raise BadArgument(
        "a literal is made of a number and a type",
        expected="`lit(2.0, x.type)`",
        found=f"lit({value!r:.40}, {type_!r:.40})",
        remedy="the type of an atom is `.type`" if isinstance(type_, _ATOMS) else None,
    )
