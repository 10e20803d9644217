from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass

import pytest

from effax.ir.errors import BadArgument
from effax.ir.prims import Jit, Unary
from effax.ir.registry import registry
from effax.ir.syntax import Jaxpr
from effax.ir.text.json import from_json, to_json
from effax.ir.text.printer import references
from tests.unit.building import F32, chain, nested, program, writer
from tests.unit.ir.samples import SAMPLES, Sample

PROGRAMS = [chain(6), writer(), nested()]


@pytest.mark.parametrize("jaxpr", PROGRAMS, ids=["chain", "writer", "nested"])
def test_programs_are_read_back(jaxpr: Jaxpr) -> None:
    again = from_json(to_json(jaxpr))
    assert again == jaxpr
    assert again.effects == jaxpr.effects
    assert to_json(again, indent=1) == to_json(jaxpr, indent=1)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_primitive_is_read_back_copied_and_pickled(sample: Sample) -> None:
    jaxpr = sample.program
    again = from_json(to_json(jaxpr), references=references(jaxpr))
    for other in (again, copy.deepcopy(jaxpr), pickle.loads(pickle.dumps(jaxpr))):
        assert other == jaxpr
        assert hash(other) == hash(jaxpr)
        assert other.effects == jaxpr.effects


def test_json_is_plain_data() -> None:
    data = json.loads(to_json(program([F32], lambda b, x: [x])))
    assert data == {
        "format": "effax",
        "version": 1,
        "programs": [
            {
                "binders": [[0, "f32[]"]],
                "n_consts": 0,
                "names": [],
                "eqns": [],
                "outs": [0],
                "effects": [],
            }
        ],
    }
    first = json.loads(to_json(writer()))["programs"][0]["eqns"]
    assert first[1]["params"] == {"indexer": {"text": "[*]"}}
    assert first[1]["effects"] == [["read", 0]]
    assert first[6]["effects"] == [["alloc", first[6]["outs"][0][0]]]


def test_a_shared_subjaxpr_is_written_once() -> None:
    jaxpr = chain(3)
    for _ in range(20):
        inner = jaxpr
        jaxpr = program(
            inner.in_types,
            lambda b, x, y: b.emit(Jit(inner), [*b.emit(Jit(inner), [x, y]), y]),  # noqa: B023
        )
    text = to_json(jaxpr)
    assert len(json.loads(text)["programs"]) == 21
    assert from_json(text) == jaxpr


@dataclass(frozen=True, slots=True)
class Mine(Unary):
    """A user-defined primitive."""

    name = "mine"
    accepts = frozenset({"float"})
    ufunc = abs


def test_custom_primitives_are_read_with_a_registry() -> None:
    jaxpr = program([F32], lambda b, x: [b(Mine(), x)])
    assert from_json(to_json(jaxpr), registry(Mine)) == jaxpr
    with pytest.raises(BadArgument, match="unknown primitive"):
        from_json(to_json(jaxpr))


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        (lambda d: d.update(format="other"), "another format"),
        (lambda d: d["programs"][0].pop("outs"), "not as `to_json` writes it"),
        (lambda d: d["programs"][0]["eqns"][0].update(ins=[77, 1]), "not in scope"),
        (lambda d: d["programs"][0]["eqns"][0].update(prim="sin"), "program 0"),
        (lambda d: d["programs"][0]["eqns"][0].update(outs=[[2, "i32[]"]]), "other types"),
        (lambda d: d["programs"][0].update(outs=[{"lit": "x"}]), "program 0"),
        (lambda d: d["programs"].clear(), "not as `to_json` writes it"),
    ],
)
def test_invalid_json_programs_are_errors(edit, match: str) -> None:  # type: ignore[no-untyped-def]
    data = json.loads(to_json(chain(2)))
    edit(data)
    with pytest.raises(BadArgument, match=match):
        from_json(json.dumps(data))
    with pytest.raises(BadArgument, match="not as"):
        from_json("no json")
