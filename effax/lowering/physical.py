"""Random keys as words: the last step before lowering.

Before::

    { lambda ; a:key<fry>[3]. let
        b:key<fry>[1] = slice[start_indices=(0,) limit_indices=(1,)] a
        c:u32[1,2] = random_unwrap b
      in (c,) }

After::

    { lambda ; a:u32[3,2]. let
        b:u32[1,2] = slice[start_indices=(0, 0) limit_indices=(1, 2)] a
      in (b,) }

An equation that moves keys moves each of their words in the same way: it is batched over the words.
Two keys are equal where all of their words are. Python functions are called with keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar, Final, cast

import numpy as np

from effax.ir.build import Builder, lit, typing_of
from effax.ir.dtypes import UINT32, as_key_dtype, is_key_dtype
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import EffaxError
from effax.ir.key_dtype import KeyDType, records_of, words_of
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import (
    BroadcastInDim,
    Constant,
    Eq,
    Ne,
    PureCallback,
    RandomUnwrap,
    RandomWrap,
    ReduceAnd,
    ReduceOr,
    Reshape,
)
from effax.ir.prims.shape import ConstantArray
from effax.ir.recursion import postorder, subjaxprs_of
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import ArrayType, Type, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering.tokens import TokenCall
from effax.lowering.writer import HasLowering, Val, Writer
from effax.transforms.framework.runner import located
from effax.transforms.rules.common.arrays import inverse, permuted, to_front
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.vmap.engine import batch_template

_CONVERSIONS: Final = (RandomWrap, RandomUnwrap)


def physical(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program on the words of its keys; a program without keys is returned unchanged.

    Type:     key<fry>[n] -> b  =>  u32[n, 2] -> b
    Effects:  none, apart from ordered side effects.
    Raises:   TransformError: an equation does not apply to the words.
    """
    made: dict[int, Jaxpr] = {}
    for inner in postorder(jaxpr):
        same = all(made[id(j)] is j for j in subjaxprs_of(inner))
        made[id(inner)] = inner if same and not _has_keys(inner) else _Words(inner, made).run()
    return made[id(jaxpr)]


def physical_type(type_: Type) -> Type:
    """Return the type of the words of an array of keys; any other type unchanged."""
    dtype = as_key_dtype(type_.dtype)
    return type_ if dtype is None else array_type((*type_.shape, *dtype.words), UINT32)


def _has_keys(jaxpr: Jaxpr) -> bool:
    """Return whether a variable or a literal is an array of keys."""
    kind: type[object] = KeyDType
    for _, ins, outs, _, _ in jaxpr.eqns:
        for v in outs:
            if type(v.type.dtype) is kind:
                return True
        for a in ins:
            if type(a) is Lit and type(a.type.dtype) is kind:
                return True
    return any(map(_is_key, (*jaxpr.binders, *jaxpr.outs)))


def _is_key(atom: Atom) -> bool:
    return is_key_dtype(atom.type.dtype)


class _Words(Rewriter):
    """One run of the pass on one program; its subjaxprs are made before."""

    def __init__(self, jaxpr: Jaxpr, made: dict[int, Jaxpr]) -> None:
        super().__init__(jaxpr, Builder(map(physical_type, jaxpr.in_types)))
        self.made = made

    def run(self) -> Jaxpr:
        for eqn in self.jaxpr.eqns:
            self.step(eqn)
        return self.build([self.words(a) for a in self.jaxpr.outs])

    def words(self, atom: Atom) -> Atom:
        """Return the new atom of one; all words of a literal key are its number."""
        if isinstance(atom, Lit) and _is_key(atom):
            return self.b(
                BroadcastInDim(physical_type(atom.type).shape, ()), lit(atom.value, _WORD)
            )
        return self.read(atom)

    def step(self, eqn: Eqn) -> None:
        prim, args = eqn.prim, tuple(map(self.words, eqn.ins))
        if isinstance(prim, _CONVERSIONS):
            self.replace(eqn, args)
        elif prim.subjaxprs():
            inner = [self.made[id(j)] for j in prim.subjaxprs()]
            self.replace(eqn, self.emit(eqn, prim.with_subjaxprs(inner), args))
        elif not any(map(_is_key, (*eqn.ins, *eqn.outs))):
            self.keep(eqn, args)
        elif isinstance(prim, Constant):
            self.replace(eqn, self.emit(eqn, _constant(prim), args))
        elif isinstance(prim, TokenCall):
            call = TokenCall(_on_words(prim.prim, eqn.ins[1:]))
            self.replace(eqn, self.emit(eqn, call, args))
        elif isinstance(prim, PureCallback):
            self.replace(eqn, self.emit(eqn, _on_words(prim, eqn.ins), args))
        else:
            self.replace(eqn, self.batched(eqn, args))

    def batched(self, eqn: Eqn, args: Sequence[Atom]) -> list[Atom]:
        """Append the equation on the words of its operands, and return those of its results."""
        key = next(a for a in (*eqn.ins, *eqn.outs) if _is_key(a))
        dtype = as_key_dtype(key.type.dtype)
        assert dtype is not None
        flags = tuple(map(_is_key, eqn.ins))
        types = tuple(
            [
                array_type(a.type.shape, UINT32) if has else a.type
                for a, has in zip(eqn.ins, flags, strict=True)
            ]
        )
        size = prod(dtype.words)
        front = [
            _to_front(self.b, x, dtype, size) if has else x
            for x, has in zip(args, flags, strict=True)
        ]
        try:
            body, out_flags = batch_template(DEFAULT_RULES, eqn.prim, types, flags, size)
            outs = self.b.inline(body, front, eqn.source)
        except EffaxError as error:
            located(error, eqn)
            raise
        if isinstance(eqn.prim, Eq | Ne):
            combine = ReduceAnd if isinstance(eqn.prim, Eq) else ReduceOr
            return [self.b(combine((0,)), outs[0])]
        return [
            _to_back(self.b, to_front(self.b, x, has, size), dtype) if _is_key(v) else x
            for v, x, has in zip(eqn.outs, outs, out_flags, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class OnWords(HasLowering):
    """Call a Python function with the keys that words are; it returns words for keys."""

    prim: Primitive
    types: tuple[Type, ...]
    name: ClassVar[str] = "on_words"

    def typing(self, *ins: Type) -> Typing:
        outs, effects = typing_of(self.prim, self.types)
        return Typing(tuple(map(physical_type, outs)), effects)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        args = [
            x if (dtype := as_key_dtype(t.dtype)) is None else records_of(x, dtype)
            for x, t in zip(ins, self.types, strict=True)
        ]
        return [
            x if (dtype := as_key_dtype(x.dtype)) is None else words_of(x, dtype)
            for x in map(np.asarray, self.prim.evaluate(*args))
        ]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        types = [physical_type(t) for t in typing_of(self.prim, self.types).outs]
        return w.host_call(self.evaluate, ins, cast("list[ArrayType]", types))


def _on_words(prim: Primitive, operands: Sequence[Atom]) -> OnWords:
    return OnWords(prim, tuple([a.type for a in operands]))


_WORD: Final = array_type((), UINT32)


def _constant(prim: Constant) -> Constant:
    dtype = as_key_dtype(prim.value.value.dtype)
    assert dtype is not None
    return Constant(ConstantArray(words_of(prim.value.value, dtype)))


def _to_front(b: Builder, x: Atom, dtype: KeyDType, size: int) -> Atom:
    """Return words with one axis of them, in front."""
    shape = x.type.shape[: len(x.type.shape) - len(dtype.words)]
    flat = x if len(dtype.words) == 1 else b(Reshape((*shape, size)), x)
    return permuted(b, flat, (len(shape), *range(len(shape))))


def _to_back(b: Builder, x: Atom, dtype: KeyDType) -> Atom:
    """Return words with their axes last; the inverse of :func:`_to_front`."""
    n = len(x.type.shape) - 1
    back = permuted(b, x, inverse((n, *range(n))))
    return back if len(dtype.words) == 1 else b(Reshape((*x.type.shape[1:], *dtype.words)), back)
