"""Failing runs: bugs in passes, missing fixpoints, odd names, nondeterministic properties."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from returns.result import Result, Success

import effax as jax
import effax.numpy as jnp
from effax.ir import prims as p
from effax.ir.edit.operations import insert, replace_eqn
from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.passes import Guarantee, Pass, bisect, dce, dump, fixpoint, inline, watch
from tests.unit.passes.test_passes import COS, PROGRAM, SIN, names

FLAT = inline(PROGRAM).unwrap()
WRONG: Any = 3


def raising(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    raise ZeroDivisionError("by what?")


BUG = Pass("bug", raising)


def test_an_error_names_the_pass() -> None:
    run = watch(inline | BUG | dce, PROGRAM)
    assert [record.name for record in run.records] == ["inline", "bug"]
    assert "failed" in str(run) and "the pass bug raises" in str(run)
    with pytest.raises(TransformError, match="the pass bug raises") as caught:
        run.unwrap()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(TransformError, match="the pass bug raises"):
        jax.jit(jnp.sin, passes=BUG)(1.0)
    with pytest.raises(TransformError, match="the pass bug raises"):
        bisect(inline | BUG, PROGRAM, lambda jaxpr: True)
    culprit = bisect(inline | COS | BUG, PROGRAM, lambda jaxpr: "sin" in str(jaxpr))
    assert culprit is not None and culprit.record.name == "sin to cos"


def test_a_missing_fixpoint_is_reported() -> None:
    turn = Pass("turn", lambda j: (SIN if names(j)[0] == "cos" else COS)(j))
    found = fixpoint(turn)(FLAT).failure()
    assert "round 0 recurs after round 1" in str(found)
    grow = Pass("grow", lambda j: Success(insert(j, 0, p.Neg(), [j.binders[0]]).jaxpr))
    found = fixpoint(grow, limit=3)(FLAT).failure()
    assert "changes after 3 rounds, from 3 to 6 equations" in str(found)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pass("two\nlines", raising),
        lambda: fixpoint(dce, limit=WRONG + 0.5),
        lambda: watch(WRONG, PROGRAM),
        lambda: watch(dce, WRONG),
        lambda: bisect(dce, WRONG, bool),
        lambda: dce(cast("Jaxpr", jax.make_jaxpr(jnp.sin)(1.0))),
    ],
)
def test_arguments_of_other_kinds_are_errors(make: Callable[[], object]) -> None:
    with pytest.raises(BadArgument):
        make()


def test_a_closed_jaxpr_is_an_error_with_a_remedy() -> None:
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    with pytest.raises(AttributeError, match=r"the program is `\.jaxpr`"):
        str(replace_eqn(cast("Jaxpr", closed), 0, p.Cos()))
    with pytest.raises(AttributeError, match=r"ClosedJaxpr has no colour$"):
        cast("Any", closed).colour  # noqa: B018


def test_guarantees_may_be_a_list() -> None:
    claimed = Pass("claimed", Success, cast("tuple[Guarantee, ...]", [Guarantee.IDEMPOTENT]))
    assert claimed.laws == (Guarantee.IDEMPOTENT,) and hash(claimed) == hash(claimed)


def test_dump_writes_valid_file_names(tmp_path: Path) -> None:
    odd = [COS.renamed(name) for name in ("../../up", "x" * 400, "a/b\\c:*?", "漢字")]
    dump(watch([pass_ for other in odd for pass_ in (other, SIN)], FLAT), tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    found = sorted(file.name for file in tmp_path.iterdir())
    assert len(found) == 1 + 2 * 8 + 2
    assert {"01_up.diff", f"03_{'x' * 60}.diff", "05_a-b-c.diff", "07_pass.diff"} < {*found}
    files = dump(watch([COS, SIN] * 60, FLAT), tmp_path)
    written = [file.name for file in files]
    assert written[0] == "000_given.jaxpr" and written[1].startswith("001_")
    assert written == sorted(written, key=lambda name: (name == "summary.txt", name.split("_")[0]))
    assert {file.name for file in tmp_path.iterdir()} == {*written, "notes.txt"}
    with pytest.raises(BadArgument, match="a folder"):
        dump(watch(dce, PROGRAM), tmp_path / "notes.txt")


def test_a_nondeterministic_property_is_an_error() -> None:
    answers = iter([True, False, True, True, False])
    with pytest.raises(BadArgument, match="not deterministic"):
        bisect([COS, SIN, COS, SIN], FLAT, lambda jaxpr: next(answers))
    # No pass changes the program, so the property is evaluated once.
    looks = count()
    assert bisect([dce, dce], dce(PROGRAM).unwrap(), lambda jaxpr: next(looks) == 0) is None
