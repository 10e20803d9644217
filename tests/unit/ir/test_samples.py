"""Properties of all primitives."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from effax.effects import Accum, Write
from effax.ir.errors import EffaxError, IllTyped
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive
from effax.ir.prims import CustomLinear, Nullary
from effax.ir.registry import own_primitives
from effax.ir.types import RefType, type_of_value
from tests.unit.building import REF
from tests.unit.ir.samples import SAMPLES, Sample, run, values

RUN = [s for s in SAMPLES if not isinstance(s.prim, CustomLinear) or s.prim.forward is not None]


def test_every_primitive_has_a_sample() -> None:
    assert {type(s.prim) for s in SAMPLES} == set(own_primitives().values())


@pytest.mark.parametrize(
    "prim", [p for _, p in sorted(own_primitives().items())], ids=lambda prim: prim.name
)
def test_a_primitive_is_documented(prim: type[Primitive]) -> None:
    doc = prim.__dict__["__doc__"]
    assert doc
    # Not the docstring that dataclass generates.
    assert not doc.startswith(f"{prim.__name__}(")


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_primitives_are_values(sample: Sample) -> None:
    prim = sample.prim
    back = pickle.loads(pickle.dumps(prim))
    assert back == prim
    assert hash(back) == hash(prim)
    if isinstance(prim, Nullary):
        assert back is prim
    for name in ("name", "parameter"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(prim, name, None)


@pytest.mark.parametrize("sample", RUN, ids=str)
def test_the_evaluator_returns_arrays_of_the_types_of_the_typing_rule(sample: Sample) -> None:
    outs = run(sample, values(sample))
    for out, type_ in zip(outs, sample.eqn.outs, strict=True):
        wanted = type_.type.inner if isinstance(type_.type, RefType) else type_.type
        assert type(out) is np.ndarray
        assert type_of_value(out) is wanted.strong()


@pytest.mark.parametrize("sample", RUN, ids=str)
def test_the_evaluator_writes_to_nothing_but_references(sample: Sample) -> None:
    args = values(sample)
    for arg, type_ in zip(args, sample.ins, strict=True):
        arg.setflags(write=isinstance(type_, RefType))
    before = [arg.copy() for arg in args]
    run(sample, args)
    row = sample.eqn.effects
    written = {e.ref for e in row if isinstance(e, Write | Accum)}
    for i, (arg, old) in enumerate(zip(args, before, strict=True)):
        assert i in written or arg.tobytes() == old.tobytes()


@pytest.mark.parametrize("sample", [s for s in RUN if not s.prim.free_axes()], ids=str)
def test_evaluating_a_program_is_evaluating_its_equation(sample: Sample) -> None:
    once = run(sample, values(sample))
    arrays = [o for o, v in zip(once, sample.eqn.outs, strict=True) if not ref(v.type)]
    for got, ct_spec in zip(evaluate(sample.program, values(sample)), arrays, strict=True):
        assert got.tobytes() == ct_spec.tobytes()


def ref(type_: object) -> bool:
    return isinstance(type_, RefType)


@pytest.mark.parametrize("sample", [s for s in RUN if s.ins], ids=str)
def test_nothing_but_typed_errors_comes_out_of_a_typing_rule(sample: Sample) -> None:
    ins = sample.ins
    refs = tuple(REF for _ in ins)
    refused = []
    for types in ((*ins, *ins, REF), (*ins, REF), refs, ins[1:], ins[:-1], ins[::-1], ()):
        try:
            sample.prim.typing(*types)
        except EffaxError:
            refused.append(types)
    assert (*ins, *ins, REF) in refused
    assert () in refused


def test_an_elementwise_primitive_refuses_what_it_does_not_take() -> None:
    refused = 0
    for sample in SAMPLES:
        if isinstance(sample.prim, Nullary):
            with pytest.raises(IllTyped) as caught:
                sample.prim.typing(*sample.ins, *sample.ins, *sample.ins, REF)
            assert sample.prim.name in caught.value.what
            refused += 1
    assert refused > 50
