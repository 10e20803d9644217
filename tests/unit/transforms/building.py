"""What tests of passes over references share: programs in a few words, and running them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from effax.ir.build import Builder, lit
from effax.ir.eval.numpy import evaluate
from effax.ir.indexing import Dim, Indexer, Pick, Span, row, whole
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import Scan, refs
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type

F32 = array_type((), "float32")
I32 = array_type((), "int32")
REF = ref_type(F32)


def f32(*shape: int) -> ArrayType:
    return array_type(shape, "float32")


def ref(*shape: int) -> RefType:
    return ref_type(f32(*shape))


def program(types: Sequence[Type], body: Callable[..., Sequence[Atom]]) -> Jaxpr:
    """The program that ``body(b, *binders)`` builds, which gives its results."""
    b = Builder(types)
    return b.finish(body(b, *b.binders))


def number(value: float, type_: Type = F32) -> Atom:
    return lit(value, type_)


def get(b: Builder, r: Atom, *dims: Dim, at: Sequence[Atom] = ()) -> Var:
    return b(refs.Get(Indexer(dims) if dims else whole(r.type.shape)), r, *at)


def swap(b: Builder, r: Atom, value: Atom, *dims: Dim, at: Sequence[Atom] = ()) -> Var:
    return b(refs.Swap(Indexer(dims) if dims else whole(r.type.shape)), r, value, *at)


def add(b: Builder, r: Atom, value: Atom, *dims: Dim, at: Sequence[Atom] = ()) -> None:
    indexer = Indexer(dims) if dims else whole(r.type.shape)
    b.emit(refs.AddUpdate(indexer), [r, value, *at])


def scan(body: Jaxpr, length: int, n_consts: int, n_carry: int, reverse: bool = False) -> Scan:
    return Scan(body, length, reverse, n_consts, n_carry)


def values(jaxpr: Jaxpr, seed: int = 0) -> list[Value]:
    """Random arguments: small numbers, integers at least 0."""
    rng = np.random.default_rng(seed)
    return [random_value(rng, type_) for type_ in jaxpr.in_types]


def random_value(rng: np.random.Generator, type_: Type) -> Value:
    if type_.dtype.kind in "iu":
        return np.asarray(rng.integers(0, 3, type_.shape), type_.dtype)
    if type_.dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, type_.shape), bool)
    return np.asarray(rng.uniform(-1, 1, type_.shape), type_.dtype)


def run(jaxpr: Jaxpr, args: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Results, and the final contents of every reference; the arguments stay as they are."""
    held = [np.array(x) for x in args]
    outs = [np.array(x) for x in evaluate(jaxpr, held)]
    return outs, [x for x, t in zip(held, jaxpr.in_types, strict=True) if isinstance(t, RefType)]


def check_bound(jaxpr: Jaxpr) -> None:
    """Variables are bound once, in order, before use; equations have the types of their typing."""
    bound = {v.id: v for v in jaxpr.binders}
    for eqn in jaxpr.eqns:
        assert all(isinstance(a, Lit) or bound.get(a.id) == a for a in eqn.ins)
        typing = eqn.prim.typing(*[a.type for a in eqn.ins])
        assert tuple(v.type for v in eqn.outs) == typing.outs
        assert eqn.effects == typing.effects, eqn.prim
        for v in eqn.outs:
            assert v.id not in bound
            bound[v.id] = v
        for held in eqn.prim.subjaxprs():
            check_bound(held)
    assert all(isinstance(a, Lit) or bound.get(a.id) == a for a in jaxpr.outs)


def primitives(jaxpr: Jaxpr) -> list[Primitive]:
    """Every primitive that the program applies, also in the programs that it holds."""
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn.prim)
        for held in eqn.prim.subjaxprs():
            found += primitives(held)
    return found


def count(jaxpr: Jaxpr, *kinds: type[Primitive]) -> int:
    """How many equations of these kinds there are, also in the programs that it holds."""
    return sum(isinstance(prim, kinds) for prim in primitives(jaxpr))


def show(jaxpr: Jaxpr, indent: str = "") -> str:
    """The program as text, for reading a failure."""
    names = ", ".join(f"v{v.id}:{v.type}" for v in jaxpr.binders)
    lines = [f"{indent}lambda {names}"]
    for eqn in jaxpr.eqns:
        outs = " ".join(f"v{v.id}:{v.type}" for v in eqn.outs)
        ins = " ".join(f"v{a.id}" if isinstance(a, Var) else str(a.value) for a in eqn.ins)
        held = eqn.prim.subjaxprs()
        what = eqn.prim.name if held else repr(eqn.prim)
        lines.append(f"{indent}  {outs} = {what} {ins}")
        lines += [show(inner, indent + "    ") for inner in held]
    outs = " ".join(f"v{a.id}" if isinstance(a, Var) else str(a.value) for a in jaxpr.outs)
    lines.append(f"{indent}in {outs}")
    return "\n".join(lines)


__all__ = [
    "F32",
    "I32",
    "REF",
    "Pick",
    "Span",
    "add",
    "check_bound",
    "count",
    "f32",
    "get",
    "number",
    "primitives",
    "program",
    "random_value",
    "ref",
    "row",
    "run",
    "scan",
    "show",
    "swap",
    "values",
    "whole",
]
