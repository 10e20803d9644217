"""Costs are values: they compare, are pickled, and are written as a table and as JSON."""

from __future__ import annotations

import json
import pickle

import effax
import effax.numpy as jnp
from effax.ir import Work, WorkTable, array_type


def test_a_cost_is_a_value() -> None:
    types = array_type((8, 8), "float32"), array_type((8, 8), "float32")
    found = effax.cost(lambda x, y: jnp.sin(x @ y))(*types)
    assert pickle.loads(pickle.dumps(found)) == found
    assert len({found, pickle.loads(pickle.dumps(found))}) == 1


def test_json_has_the_names_of_attributes() -> None:
    found = effax.cost(jnp.sin)(array_type((8,), "float32"))
    data = json.loads(found.to_json(indent=1))
    assert data["transcendentals"] == found.transcendentals == 8
    assert data["by_primitive"]["sin"]["bytes_read"] == 32
    assert data["peak_bytes"] == found.peak_bytes


def test_the_table_is_sorted_by_operations() -> None:
    table = WorkTable({"a": Work(1), "b": Work(3), "c": Work(0, 0, 8)})
    assert [*table] == ["b", "a", "c"]
    assert repr(table).startswith("WorkTable({'b'")


def test_the_text_has_tables() -> None:
    lines = str(effax.cost(lambda x: jnp.sin(x @ x))(array_type((64, 64), "float32"))).splitlines()
    assert lines[0] == "524 kflops, 4.1 ktranscendentals, 49.2 kB read, 32.8 kB written"
    assert lines[1] == "peak 32.8 kB, arguments 16.4 kB"
    assert lines[3].split() == ["primitive", "flops", "transc.", "read", "written"]
