"""Reports are tests: pasted as they are they fail as they did, and pass once the fault is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import pytest
from returns.result import Success

from effax.ir import prims as p
from effax.ir.analysis.queries import size
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.passes import Guarantee, Pass, as_pass, cse, dce, fixpoint, unroll_to, when
from effax.testing import (
    LawBroken,
    Passes,
    check_law,
    check_laws,
    check_pass,
    check_primitive,
    law,
    laws,
)
from effax.testing.generate.values import both, on_inputs
from effax.testing.report.import_path import _public
from effax.testing.report.report import regression_test
from effax.testing.report.source_text import Written
from effax.transforms.optimize.rewrite import App, Hole, Number, RewriteRule, rewriting
from effax.transforms.rules.default import DEFAULT_RULES

pytestmark = pytest.mark.slow

MINE: Final = Path(__file__).with_name("faulty.py.txt").read_text("utf-8")
"""A user's module, with a fault in everything while ``FAULTY`` is true."""

RUNNER: Final = """
import importlib, json, sys
from effax.testing import LawBroken
found = {}
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    (test,) = [value for key, value in vars(module).items() if key.startswith("test_")]
    try:
        test()
        found[name] = "passes"
    except LawBroken as broken:
        found[name] = [broken.law.name, type(broken.cause).__name__]
    except Exception as error:
        found[name] = repr(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module, imported."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "faulty_things.py").write_text(MINE, "utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield import_module("faulty_things")
    finally:
        sys.path.remove(str(folder))
        del sys.modules["faulty_things"]


def broken_by(mine: ModuleType) -> dict[str, Callable[[], object]]:
    """Return, for each fault of the module, a check that finds it."""
    x = mine.F3
    return {
        "of_pass": lambda: check_pass(mine.negated_twice, examples=60),
        "of_pipeline": lambda: check_pass(cse | mine.negated_twice, examples=60),
        "of_function": lambda: check_pass(Pass("shifted", mine.shifted), examples=60),
        "of_rules": lambda: check_law(
            "jvp_is_the_derivative",
            Passes(DEFAULT_RULES.extend(p.Sin, mine.SINE)),
            focus="math.smooth",
        ),
        "of_rule": lambda: check_law(
            "vmap_is_stacking",
            Passes(DEFAULT_RULES.extend(p.Cos, mine.cosine())),
            focus="math.smooth",
        ),
        "of_book": lambda: check_laws(
            Passes(mine.BOOK), only=["jvp_is_the_derivative"], focus="math.smooth"
        ),
        "of_passes": lambda: check_laws(mine.PASSES, only=[laws.dce_is_observationally_equal]),
        "of_a_pass_in_passes": lambda: check_laws(
            Passes(inline=mine.not_inlined), only=["inline_is_observationally_equal"]
        ),
        "of_primitive": lambda: check_primitive(mine.Thrice(), x, linear=[True]),
        "of_rewriting": lambda: laws.rule_is_sound(mine.RULE),
        "of_listed_rules": lambda: [laws.rule_is_sound(rule) for rule in mine.RULES],
        "of_rules_of_pass": lambda: check_pass(Pass("rules", rewriting([mine.RULE])), examples=60),
        "of_made_rule": lambda: laws.rule_is_sound(mine.made()),
        "of_nested_law": lambda: check_law(mine.keeps_meaning, step=mine.negated_twice),
        "of_nameless_law": lambda: check_law(mine.NAMELESS, examples=30),
        "of_law": lambda: check_law(mine.sines_are_gone, focus="math.smooth"),
        "of_pairs": lambda: check_law(mine.pairs_are_short, examples=30),
    }


def test_pasted_tests_fail_until_the_fault_is_gone(mine: ModuleType, tmp_path: Path) -> None:
    expected = {}
    for name, find in broken_by(mine).items():
        with pytest.raises(LawBroken) as found:
            find()
        broken = found.value
        head, source = str(broken).split("As a test:\n\n")
        assert head.startswith(f"a law is broken: {broken.law.name}\n")
        assert "# Define" not in source, source
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
        expected[name] = [broken.law.name, type(broken.cause).__name__]
    assert expected["of_nested_law"] == ["keeps_meaning", "LawBroken"]
    assert expected["of_nameless_law"] == ["<lambda>", "AssertionError"]
    assert outcomes(tmp_path, MINE, [*expected]) == expected
    fixed = MINE.replace("FAULTY = True", "FAULTY = False")
    assert outcomes(tmp_path, fixed, [*expected]) == dict.fromkeys(expected, "passes")


def outcomes(folder: Path, module: str, names: list[str]) -> dict[str, object]:
    """Run pasted tests beside a module in another process; return their outcomes."""
    (folder / "faulty_things.py").write_text(module, "utf-8")
    (folder / "runner.py").write_text(RUNNER, "utf-8")
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-B", "runner.py", *names],
        cwd=folder,
        env={"PYTHONPATH": f"{folder}:{root}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_what_cannot_be_imported_is_named() -> None:
    def local(jaxpr: Jaxpr) -> Any:
        return Success(jaxpr.replace(outs=()))

    with pytest.raises(LawBroken) as found:
        check_pass(Pass("local", local), examples=20)
    lines = str(found.value).splitlines()
    (note,) = [line for line in lines if line.startswith("# Define")]
    assert "# Define local here: the function test_what_cannot" in note
    assert "(test_reports.py, line " in note
    assert any("Pass(name='local', transform=local)" in line for line in lines)

    with pytest.raises(LawBroken) as found:
        check_pass(Pass("nameless", lambda jaxpr: Success(jaxpr.replace(outs=()))), examples=20)
    assert "# Define transform here: the lambda of test_reports.py, line " in str(found.value)


def test_a_local_law_is_named() -> None:
    @law
    def has_results(jaxpr: Jaxpr) -> None:
        assert jaxpr.outs

    with pytest.raises(LawBroken, match="# Define has_results here: the function test_a_local"):
        check_law(has_results, examples=400)


def test_the_message_is_what_is_seen_first() -> None:
    @law
    def is_empty(jaxpr: Jaxpr) -> None:
        if jaxpr.eqns:
            raise AssertionError("it has equations")

    with pytest.raises(LawBroken) as found:
        check_law(is_empty)
    broken = found.value
    assert broken.__cause__ is None and broken.__suppress_context__
    assert not hasattr(broken, "__notes__")
    assert str(broken).startswith("a law is broken: is_empty\n  is_empty\n\n  it has equations\n\n")
    assert len(str(broken).splitlines()) < 20


def test_a_crash_is_reported_with_its_place() -> None:
    @law
    def crashes(jaxpr: Jaxpr) -> None:
        names: dict[str, bool] = {}
        assert len(jaxpr.eqns) < 2 or names["no"]

    with pytest.raises(LawBroken) as found:
        check_law(crashes)
    assert "KeyError: 'no'\n  at test_reports.py, line " in str(found.value)
    assert isinstance(found.value.cause, KeyError)


X = Hole("x")
RULE: Final = RewriteRule("x + 0 = x", App(p.Add, X, Number(0)), X, frozenset({"float"}))
STEP: Final = Pass("mine", dce.transform, (Guarantee.SAME_MEANING, Guarantee.IDEMPOTENT))


def has_loops(jaxpr: Jaxpr) -> bool:
    """A condition."""
    return bool(jaxpr.eqns)


def same(jaxpr: Jaxpr) -> Jaxpr:
    """A pass."""
    return jaxpr


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, -3, 1.5, 2j, "a'b", b"c", (1,), (), [1, 2], {"a": 1}, {3, 4}, frozenset({5})),
        *(frozenset(), set(), Guarantee.IDEMPOTENT, p.Sin(), p.Sin, np.dtype("int8"), has_loops),
        *(laws.LAWS[0], DEFAULT_RULES, cse, STEP, RULE, Number(3), partial(dict, a=3)),
        *(App(p.Max, X, App(p.Neg, X), name="outer"), App(p.Sin(), X), replace(RULE, name="r")),
        *(rewriting([RULE]), Pass("made", rewriting([RULE, replace(RULE, name="r")]))),
        *(cse | dce, fixpoint(cse, 3), when(has_loops, dce | STEP), Passes(inline=same)),
        parse("{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }").in_types[0],
        parse("{ lambda ; a:Ref{f64[3]}. let  in () }").in_types,
        parse("{ lambda ; a:~f32[]. let  in () }").in_types,
    ],
    # What is printed of a function or a map differs between processes.
    ids=lambda value: type(value).__name__,
)
def test_values_are_written_as_what_makes_them(value: object) -> None:
    written = Written()
    text = written.of(value)
    assert not written.notes
    # What is in this file is not imported.
    names = {name: globals()[name] for home in written.homes.values() for name in home}
    exec("\n".join(written.head()), names)
    made = eval(text, names)
    if isinstance(value, partial):
        assert isinstance(made, partial)
        assert (made.func, made.keywords) == (value.func, value.keywords)
    else:
        assert made == value


def imported(folder: Path, **sources: str) -> dict[str, ModuleType]:
    """Import modules of these sources, in order."""
    sys.path.insert(0, str(folder))
    try:
        for name, source in sources.items():
            (folder / f"{name}.py").write_text(source, "utf-8")
        return {name: import_module(name) for name in sources}
    finally:
        sys.path.remove(str(folder))


def test_values_are_imported_from_where_they_are_defined(tmp_path: Path) -> None:
    prelude = (
        "from effax.passes import Pass, cse\nfrom effax.transforms.optimize.rewrite import *\n"
    )
    prelude += "from effax.ir.prims import *\nx = Hole('x')\n"
    found = imported(
        tmp_path,
        zz_defines=prelude + "mine = Pass('mine', lambda j: j)\n"
        "first, second = Pass('1', cse.transform), Pass('2', cse.transform)\n"
        "FORMS = [RewriteRule(name, App(Abs, x), x, FLOATS) for name in 'ab']\n",
        aa_uses="from zz_defines import mine, second as other\nimport zz_defines\n"
        "alias = zz_defines.mine\n"
        "for form in zz_defines.FORMS: pass\n"
        "for i in range(2): loose = zz_defines.Pass(str(i), zz_defines.cse.transform)\n",
        test_aa="from zz_defines import *\nswaps = Pass('swaps', cse.transform)\n"
        "def test_nothing(): pass\n",
    )
    defines, uses, tests = found.values()
    texts = {}
    for value in (defines.mine, defines.second, defines.FORMS[1], uses.loose, tests.swaps):
        written = Written()
        text = written.of(value)
        texts[text] = [line for line in written.head() if line]
    assert texts == {
        "mine": ["from zz_defines import mine"],
        "second": ["from zz_defines import second"],
        "FORMS[1]": ["from zz_defines import FORMS"],
        "Pass(name='1', transform=cse)": [
            "from effax.passes import Pass",
            "from effax.transforms import cse",
        ],
        "swaps": ["# Add this test to test_aa.py, which has swaps."],
    }


def test_a_test_is_added_under_a_name_that_its_file_does_not_have(tmp_path: Path) -> None:
    source = "from effax.testing import law\n@law\ndef holds(jaxpr): assert False\n"
    (module,) = imported(tmp_path, test_of_holds=source + "def test_holds(): pass\n").values()
    text = regression_test(module.holds, {"jaxpr": parse("{ lambda ; . let  in () }")})
    assert "# Add this test to test_of_holds.py, which has holds." in text
    assert "def test_holds_2() -> None:" in text


def test_a_law_that_calls_another_is_the_one_that_is_broken() -> None:
    @law
    def outer(jaxpr: Jaxpr, seed: int, step: Any) -> None:
        """p(f) = f."""
        laws.observationally_equal(jaxpr, step(jaxpr).unwrap(), seed)

    dropped = Pass("dropped", lambda jaxpr: Success(jaxpr.replace(outs=jaxpr.outs[:0])))
    with pytest.raises(LawBroken) as found:
        check_law(outer, step=dropped)
    broken = found.value
    head = (
        "a law is broken: outer\n  p(f) = f\n\n  observationally_equal does not hold: Two programs"
    )
    assert str(broken).startswith(head)
    assert set(broken.arguments) == {"jaxpr", "seed", "step"}
    assert isinstance(broken.cause, LawBroken) and not isinstance(broken.root, LawBroken)
    assert size(broken.arguments["jaxpr"]) == 0  # type: ignore[arg-type]  # a program


def test_infinities_are_written() -> None:
    assert Written().of(float("inf")) == "float('inf')"
    assert eval(Written().of(np.array([1.5, 2.0])), {"np": np}).tolist() == [1.5, 2.0]


def test_two_values_of_one_name_are_distinguished() -> None:
    written = Written(("parse",))
    assert written.of(parse) == "parse_2"
    assert "import parse as parse_2" in written.head()[0]
    assert written.of(Passes()) == "Passes()"


def test_what_a_factory_of_the_library_makes_says_so() -> None:
    written = Written()
    written.of(unroll_to(7))
    assert list(written.notes) == ["transform"]


def test_names_that_packages_load_on_first_use_are_imported_from_these() -> None:
    vars(import_module("effax.ir")).pop("parse", None)
    assert _public("effax.ir.text.parser", "parse", parse) == "effax.ir"


def test_arguments_that_are_defaults_are_left_out() -> None:
    jaxpr = parse("{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }")
    given = {"jaxpr": jaxpr, "seed": 3, "passes": Passes()}
    text = regression_test(laws.jvp_is_linear, given)
    assert text.endswith("    jvp_is_linear(jaxpr, seed=3)")


def test_large_values_are_shown_where_they_differ() -> None:
    x = np.arange(512.0)
    y = x.copy()
    y[7] += 1
    assert both(x, y) == (
        "  expected np.array(7., 'float64') at [7] of float64[512]\n"
        "  found    np.array(8., 'float64')"
    )
    assert on_inputs([2 * x, x[:50]], x, y).splitlines()[1:] == [
        "  np.array(14., 'float64') at [7] of float64[512]",
        "  np.array([ 0., 1., 2., ..., 47., 48., 49.], 'float64') of shape (50,)",
    ]


def unchanged(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program."""
    return jaxpr


def test_passes_are_written_as_calls_of_as_pass() -> None:
    written = Written()
    assert written.of(as_pass(unchanged)) == "as_pass(unchanged)"
    named = as_pass(unchanged, name="mine", laws=(Guarantee.IDEMPOTENT,))
    assert written.of(named) == "as_pass(unchanged, name='mine', laws=(Guarantee.IDEMPOTENT,))"
    assert "from effax.passes import Guarantee, as_pass" in written.head()
