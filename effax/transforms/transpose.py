"""Transposition: from a linear program to the one that takes cotangents backward.

Before, linear in ``b``::

    { lambda ; a:f32[] b:f32[3]. let
        c:f32[] = gather[0] b
        d:f32[] = mul a c
      in (d,) }

After, with ``GradRef()`` for ``b``; the cotangent of ``d`` is added where it belongs::

    { lambda ; a:f32[] b:Ref{f32[3]} c:f32[]. let
        d:f32[] = mul a c
        b[0] += d
      in () }
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from returns.result import Result

from effax.ir.build import Builder, Template, template, typing_of
from effax.ir.errors import EffaxError, TransformError
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive
from effax.ir.prims.elementwise import Add
from effax.ir.prims.refs import AddUpdate, Freeze, Get, NewRef
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type, is_inexact, ref_type, tangent_type
from effax.transforms.discharge import changed_refs
from effax.transforms.linearity import (
    FIXED,
    UNWANTED,
    WANTED,
    Kind,
    Kinds,
    Plan,
    plan,
    sparse_operands,
)
from effax.transforms.rulebook import Linear, Never, RuleBook, RuleBuilder, book_or_default
from effax.transforms.rules.common import zeros
from effax.transforms.run import as_result, located
from effax.transforms.spread import Mask
from effax.transforms.tidy import without_dead
from effax.transforms.wants import DontWant, GradRef, GradValue, NonLinear, Threaded, Want, Wants

__all__ = [
    "DontWant",
    "GradRef",
    "GradValue",
    "NonLinear",
    "Threaded",
    "Transposed",
    "Want",
    "transpose",
    "transpose_jaxpr",
]

Where = Source | SavedSource | None

IN_REF: Final[Kind] = WANTED + 1
"""A wanted argument whose cotangent goes into a reference."""


class Transposed(NamedTuple):
    """The result of :func:`transpose`.

    Attributes:
        jaxpr: ``(*nonlinear inputs, *gradient references, *cotangents of results)
            -> cotangents of the GradValue inputs that are not zero``.
        nonzero: one entry a ``GradValue`` input, in order: whether its cotangent is a result.
    """

    jaxpr: Jaxpr
    nonzero: Mask


class TransposeTemplate(NamedTuple):
    """One application transposed, and the positions of the arguments whose cotangents it gives.

    Its arguments: those that are fixed, the references of cotangents, the cotangents present.
    """

    body: Template
    given: tuple[int, ...]


def transpose(
    jaxpr: Jaxpr,
    wants: Sequence[Want],
    cts: Sequence[bool] | None = None,
    book: RuleBook | None = None,
) -> Result[Transposed, TransformError]:
    """Transpose ``jaxpr``, which is linear in the inputs that are not ``NonLinear``.

    Cotangents are summed with ``add``, or in place with ``+=`` where there is a reference: that
    of a ``GradRef`` input, that of a linear reference, and one made here for an array that is
    used more than once and at least once in a part only. No zero is ever materialised for an
    input that nothing reaches.

    Type:     (a, b, c) -> d  =>  (a, Ref b, d) -> c     b: GradRef, c: GradValue
    Effects:  a ``GradRef`` is only accumulated into. What does not depend on linear inputs runs
              first, in its order; effects of linear equations run in reverse.
    Laws:     tests/laws/test_transpose.py
    Raises:   TransformError: the program is not linear; a rule is missing; a reference is
              ``GradValue``; a linear value is written to a reference that is not linear.
    Source:   Dex, section 5.3.3; "You only linearize once".

    Args:
        jaxpr: the program.
        wants: one entry an input.
        cts: which results have a cotangent, each of the result's tangent type; all floating and
            complex ones where it is None.
        book: the rules; the library's own where it is None.
    """
    given = tuple(map(is_inexact, jaxpr.out_types)) if cts is None else tuple(cts)
    return as_result(transpose_jaxpr)(jaxpr, tuple(wants), given, book_or_default(book))


@lru_cache(maxsize=2048)
def transpose_jaxpr(jaxpr: Jaxpr, wants: Wants, cts: Mask, book: RuleBook) -> Transposed:
    """:func:`transpose` for use inside of passes and rules: raises TransformError."""
    _check(jaxpr, wants, cts)
    threaded = tuple([isinstance(w, Threaded) for w in wants])
    kinds = tuple(map(_kind, wants))
    return _Engine(plan(jaxpr, kinds, cts, threaded, book), wants, book).run(cts)


def _kind(want: Want) -> Kind:
    if isinstance(want, NonLinear):
        return FIXED
    return UNWANTED if isinstance(want, DontWant) else WANTED


def _check(jaxpr: Jaxpr, wants: Wants, cts: Mask) -> None:
    if (len(wants), len(cts)) != (len(jaxpr.binders), len(jaxpr.outs)):
        raise TransformError(
            "transpose needs one want an input, and one entry a result",
            expected=f"{len(jaxpr.binders)} and {len(jaxpr.outs)}",
            found=f"{len(wants)} and {len(cts)}",
        )
    for i, (v, want) in enumerate(zip(jaxpr.binders, wants, strict=True)):
        name = jaxpr.name_of(i)
        if not isinstance(want, NonLinear) and not is_inexact(v.type):
            raise TransformError(
                f"{name} cannot be linear: only floats and complex numbers can",
                found=str(v.type),
                remedy="mark it NonLinear()",
            )
        if isinstance(want, GradValue) and isinstance(v.type, RefType):
            raise TransformError(
                f"{name} is a reference, so its gradient must be accumulated into a reference",
                expected="GradRef() or DontWant()",
                found="GradValue()",
                remedy="bind one, as with `with_refs`",
            )
        if isinstance(want, Threaded) and not isinstance(v.type, RefType):
            raise TransformError(
                f"{name} is an array: only the cotangent of a reference is threaded",
                found=str(v.type),
                remedy="mark it GradRef()",
            )
    for i, (type_, has) in enumerate(zip(jaxpr.out_types, cts, strict=True)):
        if has and (isinstance(type_, RefType) or not is_inexact(type_)):
            raise TransformError(
                f"result {i} has no cotangent: only arrays of floats and complex numbers do",
                found=str(type_),
            )


class _Engine:
    """One run of the pass: fixed values, cotangents and their references by variable number."""

    def __init__(self, todo: Plan, wants: Wants, book: RuleBook) -> None:
        self.todo = todo
        self.wants = wants
        self.book = book
        self.b = Builder()
        size = todo.jaxpr.size
        self.fixed: list[Atom | None] = [None] * size
        self.ct: list[Atom | None] = [None] * size
        # Where a cotangent accumulates: for every linear reference, and for some arrays.
        self.ref: list[Var | None] = [None] * size

    def run(self, cts: Mask) -> Transposed:
        jaxpr, b = self.todo.jaxpr, self.b
        bound = self._bind()
        given = [
            b.bind(tangent_type(a.type)) if has else None
            for a, has in zip(jaxpr.outs, cts, strict=True)
        ]
        for eqn in self.todo.forward:
            self._forward(eqn)
        for atom, ct in zip(jaxpr.outs, given, strict=True):
            if ct is not None and isinstance(atom, Var) and self.todo.kinds[atom.id] == WANTED:
                self.add(atom, ct, None)
        for eqn, kinds, acts in self.todo.backward:
            self._backward(eqn, kinds, acts)
        for v, ref in bound:
            local = self.ref[v.id]
            if local is not None:
                self._accumulate(ref, b(Freeze(), local), None)
        values = [
            self._take(v, None)
            for v, want in zip(jaxpr.binders, self.wants, strict=True)
            if isinstance(want, GradValue)
        ]
        outs = [ct for ct in values if ct is not None]
        return Transposed(b.finish(outs), tuple([ct is not None for ct in values]))

    def _bind(self) -> list[tuple[Var, Var]]:
        """Bind nonlinear inputs, then gradient references.

        Gives references that the program changes, and where their gradient goes in the end:
        their cotangent is overwritten on the way, and what is bound may hold something already.
        """
        jaxpr, b = self.todo.jaxpr, self.b
        for v, want in zip(jaxpr.binders, self.wants, strict=True):
            if isinstance(want, NonLinear):
                self.fixed[v.id] = b.bind(v.type)
        changed = changed_refs(jaxpr)
        later = []
        for i, (v, want) in enumerate(zip(jaxpr.binders, self.wants, strict=True)):
            if not isinstance(want, GradRef | Threaded):
                continue
            ref = b.bind(cotangent_ref_type(v.type))
            if isinstance(v.type, RefType) and isinstance(want, GradRef) and i in changed:
                later.append((v, ref))
            else:
                self.ref[v.id] = ref
        return later

    def _value(self, atom: Atom) -> Atom:
        found = atom if isinstance(atom, Lit) else self.fixed[atom.id]
        assert found is not None, "a fixed value is used before it is computed"
        return found

    def _forward(self, eqn: Eqn) -> None:
        prim, ins, outs, effects, source = eqn
        args = tuple([self._value(a) for a in ins])
        types = tuple([v.type for v in outs])
        made = self.b.emit_typed(prim, args, types, effects, source)
        for v, w in zip(outs, made, strict=True):
            self.fixed[v.id] = w

    def _backward(self, eqn: Eqn, kinds: Kinds, acts: bool) -> None:
        prim, ins, outs, _, source = eqn
        cts = [self._take(v, source) for v in outs]
        if isinstance(prim, Freeze | Get) and _reads_all(prim, ins[0]):
            # The whole cotangent is summed up as that of an array: a first one is not added.
            if cts[0] is not None and isinstance(ins[0], Var):
                self.add(ins[0], cts[0], source)
            return
        present = [ct for ct in cts if ct is not None]
        if not present and not acts and not self._is_met(ins, kinds):
            return
        fixed: list[Atom] = []
        refs: list[Atom] = []
        how = list(kinds)
        for i, (a, kind) in enumerate(zip(ins, kinds, strict=True)):
            if kind == FIXED:
                fixed.append(self._value(a))
            elif kind == WANTED and isinstance(a, Var):
                ref = self._place(i, a, prim, source)
                # One reference is not passed twice.
                if ref is not None and ref not in refs:
                    refs.append(ref)
                    how[i] = IN_REF
        rule = self._template(eqn, tuple(how), tuple([ct is not None for ct in cts]))
        results = self.b.inline(rule.body, [*fixed, *refs, *present], source)
        own = self.todo.kinds
        for i, ct in zip(rule.given, results, strict=True):
            a = ins[i]
            if isinstance(a, Var) and own[a.id] == WANTED:
                self.add(a, ct, source)

    def _is_met(self, ins: Sequence[Atom], kinds: Kinds) -> bool:
        """Whether a linear reference among the arguments has a cotangent that is not zero."""
        return any(
            kind == WANTED and isinstance(a.type, RefType) and self.ref[a.id] is not None
            for a, kind in zip(ins, kinds, strict=True)
        )

    def _place(self, i: int, a: Var, prim: Primitive, source: Where) -> Var | None:
        """Where the application can add the cotangent of operand ``i`` in place, if anywhere."""
        found = self.ref[a.id]
        if type(a.type) is not RefType:
            wanted = a.id in self.todo.accumulated
            if found is None and not wanted:
                return None
            operands = sparse_operands(self.book, prim)
            if i not in (operands.in_part if found is None else operands.in_place):
                return None
        if found is None:
            found = self._new_ref(a.type, zeros(self.b, cotangent_ref_type(a.type).inner), source)
            self.ref[a.id] = found
        return found

    def _template(self, eqn: Eqn, how: Kinds, has: Mask) -> TransposeTemplate:
        types = tuple([a.type for a in eqn.ins])
        try:
            return transpose_template(self.book, eqn.prim, types, how, has)
        except EffaxError as error:
            located(error, eqn)
            raise

    def _take(self, v: Var, source: Where) -> Atom | None:
        """The whole cotangent of a value that is not used before this point.

        For a reference: the reference that holds it.
        """
        ref = self.ref[v.id]
        if ref is None:
            return self.ct[v.id]
        if type(v.type) is RefType:
            return ref
        return self.b.emit(Freeze(), (ref,), source)[0]

    def add(self, v: Var, ct: Atom, source: Where) -> None:
        """Add to the cotangent of a value, in place where it has a reference."""
        ref = self.ref[v.id]
        if ref is not None:
            self._accumulate(ref, ct, source)
        elif type(v.type) is RefType or v.id in self.todo.accumulated:
            self.ref[v.id] = self._new_ref(v.type, ct, source)
        else:
            old = self.ct[v.id]
            self.ct[v.id] = ct if old is None else self.b.emit(Add(), (old, ct), source)[0]

    def _accumulate(self, ref: Var, ct: Atom, source: Where) -> None:
        self.b.emit(AddUpdate(whole(ref.type.shape)), (ref, ct), source)

    def _new_ref(self, type_: Type, first: Atom, source: Where) -> Var:
        kind = cotangent_ref_type(type_).kind
        return self.b.emit(NewRef(kind), (first,), source)[0]


def cotangent_ref_type(type_: Type) -> RefType:
    """The type of the reference in which the cotangent of a value accumulates."""
    return type_ if isinstance(type_, RefType) else ref_type(type_)


def _reads_all(prim: Freeze | Get, ref: Atom) -> bool:
    return isinstance(prim, Freeze) or prim.indexer.is_whole(ref.type.shape)


@lru_cache(maxsize=1 << 14)
def transpose_template(
    book: RuleBook, prim: Primitive, types: tuple[Type, ...], how: Kinds, has: Mask
) -> TransposeTemplate:
    """The template of one application, without what computes cotangents that nobody wants.

    Args:
        book: the rules.
        prim: the primitive.
        types: of its arguments.
        how: one entry an argument: its kind, or that its cotangent goes into a reference.
        has: which results have a cotangent.
    """
    rule = book.of(prim).transpose
    if isinstance(rule, Never):
        raise rule.error(prim, "transpose")
    b = RuleBuilder(book)
    fixed = [b.bind(t) if k == FIXED else None for t, k in zip(types, how, strict=True)]
    refs = [
        b.bind(cotangent_ref_type(t)) if k == IN_REF else None
        for t, k in zip(types, how, strict=True)
    ]
    ins = [
        Linear(t, ref, k >= WANTED) if x is None else x
        for t, k, x, ref in zip(types, how, fixed, refs, strict=True)
    ]
    outs = typing_of(prim, types).outs
    cts = [b.bind(tangent_type(t)) if h else None for t, h in zip(outs, has, strict=True)]
    given = [
        (i, ct)
        for i, (ct, k) in enumerate(zip(rule(b, prim, ins, cts), how, strict=True))
        if ct is not None and k >= WANTED
    ]
    for i, ct in given:
        want = cotangent_ref_type(types[i]).inner
        if (ct.type.shape, ct.type.dtype) != (want.shape, want.dtype):
            raise TransformError(
                f"the transpose rule of {prim.name} gives operand {i} a cotangent of another type",
                expected=str(want),
                found=str(ct.type),
            )
    body = without_dead(b.finish([ct for _, ct in given]))
    return TransposeTemplate(template(body), tuple([i for i, _ in given]))
