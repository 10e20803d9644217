"""Steps of random keys, in programs that have some; other steps move them as any elements."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import UINT32, is_integer, is_key_dtype
from effax.ir.key_dtype import RBG, THREEFRY
from effax.ir.prims import BroadcastInDim
from effax.ir.syntax import Var
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
from effax.testing.generate.step import Steps


def key(g: ProgramBuilder) -> Var:
    """Return an array of keys in scope, or a new one, of which integers are the words."""
    found = g.maybe(lambda v: is_key_dtype(v.type.dtype))
    return wrap(g) if found is None else found


def wrap(g: ProgramBuilder) -> Var:
    dtype = g.choose.pick((THREEFRY, THREEFRY, RBG))
    words = g.maybe(lambda v: is_integer(v.type.dtype) and v.type.size <= MAX_ELEMENTS // 4)
    if words is None:
        words = g.one(p.Iota(g.features.ints[0], (g.choose.below(3),), 0))
    plain = g.one(p.ConvertElementType(UINT32), words)
    shape = (*plain.type.shape, *dtype.words)
    axes = tuple(range(len(plain.type.shape)))
    return g.one(p.RandomWrap(dtype.tag), g.one(BroadcastInDim(shape, axes), plain))


def unwrap(g: ProgramBuilder) -> None:
    words = g.one(p.RandomUnwrap(), key(g))
    if words.type.size > MAX_ELEMENTS:
        return
    small = g.one(p.And(), words, g.literal(UINT32, 7))
    g.one(p.ConvertElementType(g.choose.pick((*g.features.floats, *g.features.ints))), small)


def compare(g: ProgramBuilder) -> None:
    x = key(g)
    g.one(g.choose.pick((p.Eq(), p.Ne())), x, g.companion(x))


def draw(g: ProgramBuilder) -> None:
    words = g.one(p.RandomUnwrap(), key(g))
    if words.type.shape == RBG.words:
        g.emit(p.RngBitGenerator(UINT32, (g.choose.below(4),)), words, magnitude=2.0**32)


STEPS: Final = Steps(keys=((2, wrap), (2, unwrap), (1, compare), (1, draw)))
