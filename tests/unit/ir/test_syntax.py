from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pyrsistent import PVector

import effax
import effax.numpy as jnp
from effax.effects import Accum, ArgIndex, Io, Read, Row, Write
from effax.ir.build import Builder
from effax.ir.dtypes import as_dtype
from effax.ir.edit.alpha import alpha_eq, renumbered
from effax.ir.errors import IllTyped
from effax.ir.prims import Add, Freeze, Mul, Neg, NewRef, Swap
from effax.ir.recursion import kinds_of
from effax.ir.source import SavedSource
from effax.ir.syntax import ClosedJaxpr, Eqn, Jaxpr, Lit, Var, has_side_effects
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.ir.types import array_type
from tests.unit.building import ALL, F32, REF, VEC, WEAK, chain, nested, program, writer
from tests.unit.ir.samples import SAMPLES

PROGRAMS = [chain(4), writer(), nested()]


def test_literals_are_equal_when_their_bits_are() -> None:
    assert Lit(0.0, F32) != Lit(-0.0, F32)
    assert Lit(math.nan, F32) == Lit(float("nan"), F32)
    assert len({Lit(math.nan, F32), Lit(-math.nan, F32), Lit(float("-nan"), F32)}) == 2
    assert Lit(1.0, F32) != Lit(1.0, WEAK)
    assert Lit(True, array_type((), "bool")) != Lit(1, array_type((), "int32"))
    assert Lit(0j, array_type((), "complex64")) != Lit(-0j, array_type((), "complex64"))
    assert Lit(1.0, F32) != 1.0


def test_a_literal_is_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Lit(1.0, F32).value = 2.0


def test_a_literal_is_copied_as_itself() -> None:
    for lit in (Lit(-0.0, F32), Lit(math.nan, WEAK)):
        assert pickle.loads(pickle.dumps(lit)) == copy.deepcopy(lit) == lit
        assert hash(pickle.loads(pickle.dumps(lit))) == hash(lit)


@pytest.mark.parametrize("make", [lambda: chain(4), writer, nested])
def test_equal_builds_are_equal_programs(make: Any) -> None:
    first, second = make(), make()
    assert first is not second
    assert first == second
    assert hash(first) == hash(second)
    assert {first: 1}[second] == 1


def test_different_programs_are_different() -> None:
    assert len(set(PROGRAMS)) == len(PROGRAMS)
    assert chain(4) != chain(5)
    assert chain(4) != chain(4).replace(n_consts=1)
    assert chain(4) != chain(4).replace(outs=[chain(4).binders[0]])
    assert chain(4) != "{ lambda ; . let in () }"


def test_equality_ignores_sources_and_names_of_arguments() -> None:
    plain = chain(3)
    named = plain.replace(
        eqns=[eqn._replace(source=SavedSource("f.py", 3, "f")) for eqn in plain.eqns],
        names=("x", "y"),
    )
    assert named == plain
    assert hash(named) == hash(plain)
    assert named.name_of(1) == "y"
    assert plain.name_of(1) == "argument 1"


class CountingPrimitive(Neg):
    """Counts how often it is hashed."""

    name = "counting"
    hashes: ClassVar[int] = 0

    def __hash__(self) -> int:
        CountingPrimitive.hashes += 1
        return 7

    def __eq__(self, other: object) -> bool:
        return self is other


def test_a_program_is_hashed_once() -> None:
    b = Builder([F32])
    jaxpr = b.finish([b(CountingPrimitive(), b.binders[0])])
    assert hash(jaxpr) == hash(jaxpr)
    before = CountingPrimitive.hashes
    assert before > 0
    assert len({jaxpr, jaxpr}) == 1
    assert CountingPrimitive.hashes == before


def test_a_program_is_immutable() -> None:
    jaxpr = chain(2)
    with pytest.raises(AttributeError, match="replace"):
        jaxpr.outs = ()
    with pytest.raises(AttributeError, match="immutable"):
        del jaxpr.outs
    assert isinstance(jaxpr.eqns, PVector)
    assert isinstance(jaxpr.binders, tuple)
    assert jaxpr.eqns.append(jaxpr.eqns[0]) is not jaxpr.eqns


def test_replace_shares_unchanged_parts() -> None:
    jaxpr = chain(4)
    assert jaxpr.replace(outs=jaxpr.binders).eqns is jaxpr.eqns
    assert jaxpr.replace(eqns=jaxpr.eqns[:2]).binders is jaxpr.binders


@pytest.mark.parametrize("jaxpr", PROGRAMS, ids=["chain", "writer", "nested"])
def test_programs_are_pickled_and_copied(jaxpr: Jaxpr) -> None:
    for made in (pickle.loads(pickle.dumps(jaxpr)), copy.deepcopy(jaxpr)):
        assert made == jaxpr
        assert hash(made) == hash(jaxpr)
        assert [e.effects for e in made.eqns] == [e.effects for e in jaxpr.eqns]
        assert [v.type for v in made.binders] == list(jaxpr.in_types)


def test_the_size_is_that_of_an_environment() -> None:
    assert chain(4).size == 6
    assert Jaxpr([], [], []).size == 0
    assert Jaxpr([Var(9, F32)], [], []).size == 10


def test_effects_of_a_program_name_its_binders() -> None:
    read, write, accum = (kind(ArgIndex(0)) for kind in (Read, Write, Accum))
    assert writer().effects == Row((read, write, accum))
    assert nested().effects == Row((Read(ArgIndex(1)), Write(ArgIndex(1))))
    assert not chain(3).effects


def test_a_program_that_uses_its_own_references_only_is_pure() -> None:
    def body(b: Builder, x: Var) -> list[Var]:
        r = b(NewRef(), x)
        b.emit(Swap(ALL), [r, x])
        return [b(Freeze(), r)]

    assert not program([VEC], body).effects


def test_host_effects_are_found() -> None:
    io: Row[ArgIndex] = Row([Io("stdout")])
    assert has_side_effects(io)
    assert not has_side_effects(writer().effects)
    eqn = Eqn(Neg(), (), (), io)
    assert has_side_effects(Jaxpr([], [eqn, eqn], []).effects)


def renamed(jaxpr: Jaxpr, shift: int) -> Jaxpr:
    """Return the program with other numbers, at every depth."""

    def new(atom: Any) -> Any:
        return atom if isinstance(atom, Lit) else Var(atom.id * 2 + shift, atom.type)

    eqns = [
        e._replace(
            prim=e.prim.with_subjaxprs([renamed(inner, shift + 1) for inner in e.prim.subjaxprs()]),
            ins=tuple(map(new, e.ins)),
            outs=tuple(map(new, e.outs)),
        )
        for e in jaxpr.eqns
    ]
    return jaxpr.replace([new(v) for v in jaxpr.binders], eqns, [new(a) for a in jaxpr.outs])


@pytest.mark.parametrize("jaxpr", PROGRAMS, ids=["chain", "writer", "nested"])
def test_programs_are_alpha_equal_up_to_the_numbers_of_variables(jaxpr: Jaxpr) -> None:
    other = renamed(jaxpr, 5)
    assert other != jaxpr
    assert alpha_eq(jaxpr, other)
    assert renumbered(other) == jaxpr == renumbered(jaxpr)


def test_programs_that_differ_in_more_are_not_alpha_equal() -> None:
    x, y = Var(0, F32), Var(1, F32)
    first = Jaxpr([x, y], [Eqn(Add(), (x, y), (Var(2, F32),))], [Var(2, F32)])
    assert not alpha_eq(first, first.replace(outs=[x]))
    assert not alpha_eq(first, first.replace(eqns=[Eqn(Add(), (y, x), (Var(2, F32),))]))
    assert not alpha_eq(first, first.replace(eqns=[Eqn(Mul(), (x, y), (Var(2, F32),))]))
    assert not alpha_eq(chain(3), writer())


def test_types_of_a_program() -> None:
    assert writer().in_types == (REF, array_type((), "int32"), VEC)
    assert writer().out_types == (VEC, F32)
    assert as_dtype("float32") == writer().out_types[0].dtype


def test_a_variable_out_of_scope_is_reported() -> None:
    broken = chain(1).replace(outs=[Var(77, F32)])
    with pytest.raises(IllTyped, match="cz is not in scope"):
        renumbered(broken)
    with pytest.raises(IllTyped, match="cz is not in scope"):
        alpha_eq(chain(1), broken)


def test_variables_of_subjaxprs_shadow_those_outside() -> None:
    inner = "{ lambda ; b:f32[] a:f32[]. let c:f32[] = sub b a in (c,) }"
    text = f"{{ lambda ; a:f32[] b:f32[]. let c:f32[] = jit[name=f jaxpr={inner}] a b in (c,) }}"
    jaxpr = parse(text)
    assert alpha_eq(
        jaxpr,
        parse(
            text.replace("b:f32[] a:f32[]. let", "x:f32[] y:f32[]. let").replace(
                "sub b a", "sub x y"
            )
        ),
    )
    assert not alpha_eq(jaxpr, parse(text.replace("sub b a", "sub a b")))
    assert not alpha_eq(jaxpr, parse(text.replace("] a b in", "] b a in")))


def test_closed_programs_are_equal_where_their_constants_are() -> None:
    table = np.asarray([0.0, math.nan, 2.0], np.float32)

    def closed(x: np.ndarray) -> ClosedJaxpr:
        return effax.make_jaxpr(lambda y: y + x)(1.0)

    first = closed(table)
    assert first == closed(table.copy()) and hash(first) == hash(closed(table.copy()))
    assert not (first != first)  # noqa: PLR0124, SIM202
    assert first != closed(np.asarray([-0.0, math.nan, 2.0], np.float32))
    assert first != closed(table[:2]) and first != first.jaxpr
    assert pickle.loads(pickle.dumps(first)) == copy.deepcopy(first) == first


def test_references_among_constants_are_equal_where_they_are_the_same() -> None:
    one, two = effax.new_ref(1.0), effax.new_ref(1.0)

    def closed(ref: effax.Ref) -> ClosedJaxpr:
        return effax.make_jaxpr(lambda y: y + ref[...])(1.0)

    assert closed(one) == closed(one) and closed(one) != closed(two)
    assert closed(one).jaxpr == closed(two).jaxpr


def test_symbols_among_constants_are_equal_where_they_are_the_same() -> None:
    found: list[ClosedJaxpr] = []

    def closed(z: effax.Array) -> ClosedJaxpr:
        return effax.make_jaxpr(lambda y: y + z)(1.0)

    def outer(x: effax.Array) -> effax.Array:
        found.extend(map(closed, (x, x, x + 1)))
        return x

    effax.make_jaxpr(outer)(jnp.ones(()))
    assert found[0] == found[1] != found[2]


AGAIN = """
import pickle, sys
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
programs, texts = pickle.load(open(sys.argv[1], "rb"))
for jaxpr, text in zip(programs, texts, strict=True):
    again = parse(text, references=references(jaxpr))
    assert str(jaxpr) == text and again == jaxpr and hash(again) == hash(jaxpr)
"""


@pytest.mark.slow
def test_pickled_programs_are_the_same_in_another_process(tmp_path: Path) -> None:
    programs = [*PROGRAMS, *[sample.program for sample in SAMPLES]]
    plain = [jaxpr for jaxpr in programs if not references(jaxpr)]
    file = tmp_path / "programs"
    file.write_bytes(pickle.dumps((plain, list(map(str, plain)))))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "12"}
    subprocess.run([sys.executable, "-c", AGAIN, str(file)], check=True, env=env)


def test_kinds_are_those_of_the_equations_of_one_program() -> None:
    inner = chain(3)
    assert kinds_of(chain(0)) == frozenset()
    assert kinds_of(inner) == {type(eqn.prim) for eqn in inner.eqns}
    assert kinds_of(inner.replace(eqns=[*inner.eqns])) == kinds_of(inner)
