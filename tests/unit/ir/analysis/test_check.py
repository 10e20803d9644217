"""Every kind of fault, seeded alone into a program that is well formed, and many at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import pytest
from returns.result import Success

import effax
from effax.effects import Alloc, ArgIndex, Free, Read, Row, Rule, Write
from effax.ir.analysis.check import Fault, FaultKind, check, checked
from effax.ir.axes import Axis
from effax.ir.build import Builder
from effax.ir.errors import IllTyped, RefError
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import (
    Add,
    AddUpdate,
    Cond,
    FreeRef,
    Freeze,
    Get,
    Jit,
    Lt,
    Mul,
    Neg,
    NewRef,
    Psum,
    Remat,
    Scan,
    ShardMap,
    Sin,
    Swap,
    While,
)
from effax.ir.source import SavedSource
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import Type, array_type, ref_type
from tests.counting import calls
from tests.unit.building import (
    ALL,
    BOOL,
    F32,
    I32,
    REF,
    VEC,
    chain,
    doubled,
    nested,
    program,
    writer,
)
from tests.unit.ir.samples import SAMPLES, Sample

PUBLIC = {*effax.__all__, *effax.ir.__all__, *effax.ref.__all__}
HERE = SavedSource("model.py", 12, "loss")


def faults(jaxpr: Jaxpr) -> tuple[Fault, ...]:
    """Return the faults of a program, each of which has a remedy that names public functions."""
    found = check(jaxpr).swap().value_or(())
    for fault in found:
        assert fault.remedy, fault
        assert {*re.findall(r"`(\w+)[`(]", fault.remedy)} <= PUBLIC, fault
    return found


def kinds(jaxpr: Jaxpr) -> list[FaultKind]:
    return [fault.kind for fault in faults(jaxpr)]


def edited(jaxpr: Jaxpr, index: int, **fields: object) -> Jaxpr:
    """Return the program with fields of one equation replaced."""
    eqn = jaxpr.eqns[index]._replace(**fields)  # type: ignore[arg-type]  # tests put in anything
    return jaxpr.replace(eqns=jaxpr.eqns.set(index, eqn))


@pytest.mark.parametrize("make", [lambda: chain(40), writer, doubled, nested])
def test_well_formed_programs_pass(make: Callable[[], Jaxpr]) -> None:
    jaxpr = make()
    assert check(jaxpr) == Success(jaxpr)
    assert checked(jaxpr) is jaxpr


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_primitive_passes(sample: Sample) -> None:
    consumed = sample.prim.name in ("freeze", "free_ref")
    assert kinds(sample.program) == ([FaultKind.FOREIGN_FREE] if consumed else [])


# One fault at a time.


def test_a_variable_that_is_not_bound() -> None:
    jaxpr = edited(chain(3), 1, ins=(Var(99, VEC), Var(1, VEC)), source=HERE)
    (fault,) = faults(jaxpr)
    assert fault.kind is FaultKind.SCOPE
    assert "not in scope" in fault.message
    assert fault.equation == "d:f32[3] = mul dv b"
    assert fault.source == str(HERE)


def test_a_variable_that_is_bound_later() -> None:
    assert kinds(edited(chain(3), 0, ins=(Var(3, VEC), Var(1, VEC)))) == [FaultKind.SCOPE]


def test_a_result_that_is_not_bound() -> None:
    (fault,) = faults(chain(1).replace(outs=[Var(99, VEC)]))
    assert fault.kind is FaultKind.SCOPE
    assert fault.equation is None


def test_a_variable_of_another_type_than_it_is_bound_at() -> None:
    jaxpr = edited(chain(3), 2, ins=(Var(3, VEC.update(shape=(4,))),))
    assert kinds(jaxpr) == [FaultKind.TYPE, FaultKind.TYPE]
    assert "d is used at another type" in faults(jaxpr)[0].message


def test_a_result_of_another_type_than_it_is_bound_at() -> None:
    assert kinds(chain(1).replace(outs=[Var(2, F32)])) == [FaultKind.TYPE]


def test_a_second_binding() -> None:
    jaxpr = chain(3)
    again = edited(jaxpr, 2, outs=(Var(2, VEC),)).replace(outs=[Var(2, VEC)])
    assert kinds(again) == [FaultKind.BINDING]
    assert kinds(Jaxpr([Var(0, F32), Var(0, F32)], [], [])) == [FaultKind.BINDING]


def test_numbers_out_of_order() -> None:
    jaxpr = edited(chain(3), 1, outs=(Var(9, VEC),))
    wrong = edited(jaxpr, 2, ins=(Var(9, VEC),))
    assert kinds(wrong) == [FaultKind.NUMBERING]
    assert "renumbered" in str(faults(wrong)[0])
    assert kinds(Jaxpr([Var(-1, F32)], [], [])) == [FaultKind.NUMBERING]


def test_gaps_in_the_numbers_are_no_fault() -> None:
    jaxpr = edited(chain(2), 1, outs=(Var(9, VEC),)).replace(outs=[Var(9, VEC)])
    assert kinds(jaxpr) == []


@pytest.mark.parametrize("n_consts", [-1, 3])
def test_more_constants_than_binders(n_consts: int) -> None:
    assert kinds(chain(1).replace(n_consts=n_consts)) == [FaultKind.BINDING]


@pytest.mark.parametrize(
    "lit",
    [
        Lit(1, F32),
        Lit(1.0, I32),
        Lit(True, I32),
        Lit(0, BOOL),
        Lit(1.0, array_type((), "complex64")),
        Lit(300, array_type((), "int8")),
        Lit(-1, array_type((), "uint8")),
        Lit(8, array_type((), "int4")),
        Lit(1.0, VEC),
    ],
    ids=repr,
)
def test_literals_that_are_not_of_their_type(lit: Lit) -> None:
    (fault,) = faults(Jaxpr([], [], [lit]))
    assert fault.kind is FaultKind.LITERAL
    eqn = Eqn(Neg(), (lit,), (Var(0, lit.type),))
    assert FaultKind.LITERAL in kinds(Jaxpr([], [eqn], []))


def test_arguments_that_do_not_type_check() -> None:
    jaxpr = program([F32, I32], lambda b, x, i: [b(Neg(), x)])
    (fault,) = faults(edited(jaxpr, 0, prim=Add(), ins=(Var(0, F32), Var(1, I32)), source=HERE))
    assert fault.kind is FaultKind.TYPE
    assert fault.found == "f32[], i32[]"
    assert fault.remedy == "convert the operands first"
    assert str(fault) == (
        "type: add has operands of different dtype\n"
        "  expected: equal dtypes\n"
        "  found:    f32[], i32[]\n"
        "  equation: c:f32[] = add a b\n"
        "  at:       model.py:12 (loss)\n"
        "  remedy:   convert the operands first"
    )


@pytest.mark.parametrize("outs", [(), (Var(2, F32),), (Var(2, VEC), Var(3, VEC))])
def test_results_of_other_types_than_the_typing_rule_returns(outs: tuple[Var, ...]) -> None:
    jaxpr = edited(chain(1), 0, outs=outs).replace(outs=[])
    (fault,) = faults(jaxpr)
    assert fault.kind is FaultKind.TYPE
    assert fault.expected == "f32[3]"


READ_0: Row[ArgIndex] = Row([Read(ArgIndex(0))])
WRITE_0: Row[ArgIndex] = Row([Write(ArgIndex(0))])
FAR: Row[ArgIndex] = Row([Free(ArgIndex(17)), Alloc(ArgIndex(18))])


@pytest.mark.parametrize("row", [Row(), WRITE_0, FAR], ids=str)
def test_effects_that_are_not_those_of_the_typing_rule(row: Row[ArgIndex]) -> None:
    jaxpr = program([REF], lambda b, r: [b(Get(ALL), r)])
    (fault,) = faults(edited(jaxpr, 0, effects=row))
    assert fault.kind is FaultKind.EFFECT
    assert fault.expected == "{read 0}"
    assert fault.found == str(row)


def test_effects_of_a_pure_equation() -> None:
    assert kinds(edited(chain(2), 0, effects=READ_0)) == [FaultKind.EFFECT]


@dataclass(frozen=True, slots=True)
class Alias(Primitive):
    """Returns a reference that it did not allocate."""

    name: ClassVar[str] = "alias"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return ins


def test_a_reference_out_of_nowhere() -> None:
    jaxpr = program([REF], lambda b, r: [b(Get(ALL), b(Alias(), r))])
    (fault,) = faults(jaxpr)
    assert fault.kind is FaultKind.EFFECT
    assert "does not allocate" in fault.message


# References.


def ref_program(body: Callable[[Builder, Var, Var], Sequence[Atom]]) -> Jaxpr:
    """Return a program of a vector and a reference that it makes itself."""
    return program([VEC], lambda b, x: body(b, x, b(NewRef(), x)))


def test_one_reference_passed_twice() -> None:
    def two(b: Builder, r: Var, s: Var) -> list[Atom]:
        b.emit(AddUpdate(ALL), [s, b(Get(ALL), r)])
        return []

    inner = program([REF, REF], two)
    apart = program([REF, REF], lambda b, r, s: b.emit(Jit(inner), [r, s]))
    twice = program([REF, REF], lambda b, r, s: b.emit(Jit(inner), [r, r]))
    assert kinds(apart) == []
    (fault,) = faults(twice)
    assert fault.kind is FaultKind.ALIAS
    assert fault.kind.rule is Rule.ALIAS
    assert fault.remedy == Rule.ALIAS.remedy


def test_a_reference_that_is_closed_over_and_scanned() -> None:
    table = ref_type(array_type((3, 3), "float32"))

    def body(b: Builder, whole: Var, row: Var) -> list[Atom]:
        return [b(Get(ALL), row)]

    step = program([table, REF], body)
    jaxpr = program([table], lambda b, r: b.emit(Scan(step, 3, False, 1, 0), [r, r]))
    assert kinds(jaxpr) == [FaultKind.ALIAS]


@pytest.mark.parametrize("consume", [Freeze(), FreeRef()])
def test_uses_after_a_reference_is_consumed(consume: Primitive) -> None:
    def body(b: Builder, x: Var, r: Var) -> list[Atom]:
        b.emit(consume, [r])
        b.emit(Swap(ALL), [r, x])
        return [b(Get(ALL), r)]

    found = faults(ref_program(body))
    assert [fault.kind for fault in found] == [FaultKind.USE_AFTER_FREE] * 2
    assert f"{consume.name} b`" in str(found[0])


def test_consuming_twice() -> None:
    jaxpr = ref_program(lambda b, x, r: [b(Freeze(), r), b(Freeze(), r)])
    assert kinds(jaxpr) == [FaultKind.USE_AFTER_FREE]


def test_a_use_in_a_subjaxpr_after_the_reference_is_consumed() -> None:
    def body(b: Builder, x: Var, r: Var) -> list[Atom]:
        y = b(Freeze(), r)
        return list(b.emit(Jit(doubled()), [y, r]))

    assert kinds(ref_program(body)) == [FaultKind.USE_AFTER_FREE]


def test_freezing_an_argument() -> None:
    (fault,) = faults(program([REF], lambda b, r: [b(Freeze(), r)]))
    assert fault.kind is FaultKind.FOREIGN_FREE
    assert fault.remedy == Rule.FOREIGN_FREE.remedy


def free_in(wrap: Callable[[Builder, Jaxpr, Var, Var], Sequence[Var]]) -> Jaxpr:
    """Return a program whose subjaxpr frees a reference of the outer program."""

    def free(b: Builder, r: Var) -> list[Atom]:
        b.emit(FreeRef(), [r])
        return []

    inner = program([REF], free)
    return ref_program(lambda b, x, r: list(wrap(b, inner, x, r)))


@pytest.mark.parametrize("step", ["jit", "scan", "cond, program 0"])
def test_a_subjaxpr_does_not_consume_foreign_references(step: str) -> None:
    def wrap(b: Builder, inner: Jaxpr, x: Var, r: Var) -> Sequence[Var]:
        other = program([REF], lambda b, r: [])
        if step == "jit":
            return b.emit(Jit(inner), [r])
        if step == "scan":
            return b.emit(Scan(inner, 2, False, 1, 0), [r])
        flag = b(Lt(), Lit(0.0, F32), Lit(1.0, F32))
        return b.emit(Cond((inner, other)), [flag, r])

    (fault,) = faults(free_in(wrap))
    assert fault.kind is FaultKind.FOREIGN_FREE
    assert fault.path == (step,)
    assert f"(in {step})" in str(fault)


def test_a_loop_does_not_consume_what_it_did_not_make() -> None:
    def wrap(b: Builder, inner: Jaxpr, x: Var, r: Var) -> Sequence[Var]:
        going = program([REF, F32], lambda b, r, c: [b(Lt(), c, Lit(3.0, F32))])

        def step(b: Builder, r: Var, c: Var) -> list[Atom]:
            b.emit(FreeRef(), [r])
            return [c]

        return b.emit(While(going, program([REF, F32], step), 1), [r, Lit(0.0, F32)])

    assert kinds(free_in(wrap)) == [FaultKind.FOREIGN_FREE]


def test_references_consumed_by_a_subjaxpr_stay_consumed() -> None:
    def wrap(b: Builder, inner: Jaxpr, x: Var, r: Var) -> Sequence[Var]:
        b.emit(Jit(inner), [r])
        return b.emit(Get(ALL), [r])

    assert kinds(free_in(wrap)) == [FaultKind.FOREIGN_FREE, FaultKind.USE_AFTER_FREE]


def test_a_subjaxpr_may_consume_references_that_it_allocates() -> None:
    inner = ref_program(lambda b, x, r: [b(Freeze(), r)])
    jaxpr = program([VEC], lambda b, x: b.emit(Jit(inner), [x]))
    assert kinds(jaxpr) == []


def test_references_among_results() -> None:
    (made,) = faults(ref_program(lambda b, x, r: [r]))
    (passed,) = faults(program([REF], lambda b, r: [r]))
    assert made.kind is passed.kind is FaultKind.ESCAPE


def test_references_among_results_of_a_subjaxpr_are_reported_once() -> None:
    inner = program([REF], lambda b, r: [r])
    eqn = Eqn(Jit(inner), (Var(0, REF),), ())
    assert kinds(Jaxpr([Var(0, REF)], [eqn], [])) == [FaultKind.ESCAPE]


def test_a_reference_to_a_reference() -> None:
    eqn = Eqn(NewRef(), (Var(0, REF),), (Var(1, REF),), Row([Alloc(ArgIndex(0))]))
    assert kinds(Jaxpr([Var(0, REF)], [eqn], [])) == [FaultKind.REF_TO_REF]


def test_a_reference_where_an_array_belongs() -> None:
    eqn = Eqn(Sin(), (Var(0, REF),), (Var(1, VEC),))
    (fault,) = faults(Jaxpr([Var(0, REF)], [eqn], []))
    assert fault.kind is FaultKind.REF_AS_ARRAY
    assert fault.remedy == Rule.REF_AS_ARRAY.remedy


def test_a_write_of_several_devices_to_one_reference() -> None:
    inner = program([REF, VEC], lambda b, r, x: b.emit(Swap(ALL), [r, x]))
    eqn = Eqn(
        ShardMap(inner, (Axis("i", 2),), ((), ()), ((),)),
        (Var(0, REF), Var(1, VEC)),
        (Var(2, VEC),),
        inner.effects,
    )
    (fault,) = faults(Jaxpr([Var(0, REF), Var(1, VEC)], [eqn], []))
    assert fault.kind is FaultKind.SHARED_WRITE
    assert fault.remedy == Rule.SHARED_WRITE.remedy


def test_an_axis_has_one_size() -> None:
    def use(b: Builder, x: Var) -> list[Atom]:
        return [b(Psum(Axis("i", 3)), b(Psum(Axis("i", 2)), x))]

    (fault,) = faults(program([VEC], use))
    assert fault.kind is FaultKind.AXIS
    assert "'i'" in fault.message


def test_a_program_that_is_computed_again_has_no_effects() -> None:
    inner = program([REF, VEC], lambda b, r, x: b.emit(Swap(ALL), [r, x]))
    ins = (Var(0, REF), Var(1, VEC))
    eqn = Eqn(Remat(inner), ins, (Var(2, VEC),), inner.effects)
    assert kinds(Jaxpr(ins, [eqn], [])) == [FaultKind.EFFECT]


def test_every_kind_is_seeded_in_this_module() -> None:
    with open(__file__, encoding="utf-8") as file:  # noqa: PTH123  # no path is needed
        text = file.read()
    assert [kind for kind in FaultKind if f"FaultKind.{kind.name}" not in text] == []
    assert {kind.rule for kind in FaultKind if kind.rule} == set(Rule)


def test_faults_of_subjaxprs_are_found_at_any_depth() -> None:
    bad = edited(chain(1), 0, ins=(Var(99, VEC), Var(1, VEC)))
    inner = program([VEC, VEC], lambda b, x, y: [x])
    middle = Jaxpr(inner.binders, [Eqn(Jit(bad), inner.binders, (Var(2, VEC),))], inner.outs)
    outer = Jaxpr(inner.binders, [Eqn(Jit(middle), inner.binders, (Var(2, VEC),))], inner.outs)
    (fault,) = faults(outer)
    assert fault.path == ("jit", "jit")
    assert fault.kind is FaultKind.SCOPE


def test_a_wrong_effect_in_a_subjaxpr_is_reported_at_its_path() -> None:
    inner = edited(program([REF], lambda b, r: [b(Get(ALL), r)]), 0, effects=FAR)
    jaxpr = Jaxpr([Var(0, REF)], [Eqn(Jit(inner), (Var(0, REF),), (Var(1, VEC),))], [])
    (fault,) = faults(jaxpr)
    assert (fault.kind, fault.path) == (FaultKind.EFFECT, ("jit",))


def test_a_shared_subjaxpr_is_checked_once() -> None:
    bad = edited(chain(1), 0, ins=(Var(99, VEC), Var(1, VEC)))

    def body(b: Builder, x: Var, y: Var) -> list[Var]:
        for _ in range(5):
            (x,) = b.emit(Jit(bad), [x, y])
        return [x]

    assert kinds(program([VEC, VEC], body)) == [FaultKind.SCOPE]


def test_deep_sharing_is_not_unfolded() -> None:
    inner = chain(1)
    for _ in range(60):
        level = inner

        def twice(b: Builder, x: Var, y: Var, level: Jaxpr = level) -> list[Var]:
            (z,) = b.emit(Jit(level), [x, y])
            return list(b.emit(Jit(level), [z, y]))

        inner = program([VEC, VEC], twice)
    assert kinds(inner) == []


# Several at once.


def broken() -> Jaxpr:
    """Return a program with one fault of most kinds, in this order."""

    def body(b: Builder, x: Var, r: Var) -> list[Atom]:
        b(Neg(), x)
        b(Mul(), x, x)
        b(Get(ALL), r)
        b.emit(AddUpdate(ALL), [r, x])
        y = b(Freeze(), b(NewRef(), x))
        return [y, r]

    jaxpr = program([VEC, REF], body)
    jaxpr = edited(jaxpr, 0, ins=(Var(99, VEC),))
    jaxpr = edited(jaxpr, 1, ins=(Var(0, VEC), Lit(2, F32)))
    jaxpr = edited(jaxpr, 2, effects=Row())
    jaxpr = edited(jaxpr, 3, ins=(Var(1, REF), Var(1, REF)))
    return edited(jaxpr, 5, ins=(Var(1, REF),), outs=(Var(0, VEC),), source=HERE)


def test_all_faults_are_reported_in_program_order() -> None:
    assert kinds(broken()) == [
        FaultKind.SCOPE,
        FaultKind.LITERAL,
        FaultKind.EFFECT,
        FaultKind.REF_AS_ARRAY,
        FaultKind.ALIAS,
        FaultKind.FOREIGN_FREE,
        FaultKind.BINDING,
        FaultKind.SCOPE,
        FaultKind.ESCAPE,
    ]


def test_the_first_fault_is_raised_and_the_others_are_counted() -> None:
    with pytest.raises(IllTyped, match="not in scope") as caught:
        checked(broken())
    assert not isinstance(caught.value, RefError)
    assert caught.value.__notes__ == ["and 8 more faults: `check` lists them all"]
    assert caught.value.equation == "c:f32[3] = neg dv"


def test_a_broken_rule_is_raised_as_an_error_with_its_code() -> None:
    with pytest.raises(RefError) as caught:
        checked(program([REF], lambda b, r: [b(Freeze(), r)]))
    assert caught.value.rule == Rule.FOREIGN_FREE.code
    assert not hasattr(caught.value, "__notes__")


def test_faults_are_values() -> None:
    (fault,) = faults(program([REF], lambda b, r: [r]))
    (again,) = faults(program([REF], lambda b, r: [r]))
    assert fault == again
    assert hash(fault) == hash(again)
    with pytest.raises(FrozenInstanceError):
        fault.message = ""  # type: ignore[misc]  # that is the point


def test_checking_changes_nothing() -> None:
    jaxpr, twin = broken(), broken()
    faults(jaxpr)
    assert jaxpr == twin
    assert str(jaxpr) == str(twin)


@pytest.mark.slow
def test_checking_is_linear() -> None:
    large, small = chain(20_000), chain(2_000)
    assert calls(lambda: check(large)) < 12 * calls(lambda: check(small))
