"""``python -m effax show``: output and errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from effax.ir.errors import ParseError
from effax.ir.text.parser import parse
from effax.ir.types import array_type, ref_type
from effax.show.arguments import Arguments, read_arguments
from effax.show.command import FAILED, USAGE, main

MODULE = """
import effax
import effax.numpy as jnp
from effax.passes import Pass
from returns.result import Success


def loss(x, w):
    return jnp.sum(jnp.tanh(x @ w))


def step(params, x, *, scale=1.0):
    params["w"][...] += scale * x
    return jnp.sum(x)


def twice(x):
    unused = jnp.cos(x)
    return effax.jit(jnp.sin)(x)


class Model:
    @staticmethod
    def apply(x):
        return x + 1


def power(x, n, *, kind="sin"):
    for _ in range(n):
        x = x * x
    return getattr(jnp, kind)(x)


broken = Pass("broken", lambda jaxpr: Success(jaxpr.replace(eqns=[])))
mine = Pass("mine", lambda jaxpr: Success(jaxpr.replace(outs=[])))
traced = effax.make_jaxpr(lambda x: x * 2)(1.0)
number = 3
"""

F3 = array_type((3,), "float32")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a module."""
    (tmp_path / "shown_model.py").write_text(MODULE)
    (tmp_path / "shown_broken.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def show(capsysbinary: pytest.CaptureFixture[bytes], *argv: str) -> tuple[int, str, str]:
    status = main(["show", *argv])
    out, err = capsysbinary.readouterr()
    return status, out.decode(), err.decode()


Captured = pytest.CaptureFixture[bytes]


def test_a_program_as_text(here: Path, capsysbinary: Captured) -> None:
    status, out, err = show(capsysbinary, "shown_model:loss", "--args", "f32[2,3], f32[3]")
    assert (status, err) == (0, "")
    assert [eqn.prim.name for eqn in parse(out).eqns] == ["dot_general", "tanh", "reduce_sum"]


def test_trees_references_and_names_of_arguments(here: Path, capsysbinary: Captured) -> None:
    args = '{"w": Ref{f32[3]}}, x=f32[3], scale=~f32[]'
    status, out, _ = show(capsysbinary, "shown_model:step", "--args", args)
    assert status == 0
    assert "!{accum a}" in out
    assert [str(t) for t in parse(out).in_types] == ["Ref{f32[3]}", "~f32[]", "f32[3]"]


def test_passes_run_in_order(here: Path, capsysbinary: Captured) -> None:
    args = ("shown_model:twice", "--args", "f32[3]", "--passes")
    assert "cos" not in show(capsysbinary, *args, "inline, dce")[1]
    pushed = parse(show(capsysbinary, *args, "inline,jvp,dce")[1])
    assert pushed.in_types == (F3, F3)
    assert "{ lambda" in show(capsysbinary, *args, "linearize")[1]
    assert "sin" not in show(capsysbinary, *args, "shown_model:mine,optimize")[1]
    free = show(
        capsysbinary,
        "shown_model:step",
        "--args",
        "{'w': Ref{f32[3]}}, f32[3]",
        "--passes",
        "discharge",
    )
    assert "Ref" not in free[1]


@pytest.mark.parametrize("form", ["svg", "timeline"])
def test_pictures(here: Path, capsysbinary: Captured, form: str) -> None:
    status, out, _ = show(
        capsysbinary, "shown_model:loss", "--args", "f32[2,3], f32[3]", "--to", form
    )
    assert status == 0
    assert ElementTree.fromstring(out).tag.endswith("svg")


def test_the_cost_of_a_program(here: Path, capsysbinary: Captured) -> None:
    _, out, _ = show(capsysbinary, "shown_model:twice", "--args", "f32[3]", "--to", "cost")
    assert out.startswith("0 flops, 6 transcendentals, 24 B read, 24 B written\npeak ")


def test_stablehlo_of_a_program_with_references(here: Path, capsysbinary: Captured) -> None:
    args = "{'w': Ref{f32[3]}}, f32[3]"
    _, out, _ = show(capsysbinary, "shown_model:step", "--args", args, "--to", "stablehlo")
    assert "stablehlo.add" in out and "tf.aliasing_output" in out


def test_before_and_after_to_a_file(here: Path, capsysbinary: Captured) -> None:
    options = ("--args", "f32[3]", "--passes", "inline,dce", "--compare")
    status, out, _ = show(
        capsysbinary, "shown_model.py:twice", *options, "--to", "html", "-o", "out.html"
    )
    assert (status, out) == (0, "")
    assert "fx-gone" in (here / "out.html").read_text("utf-8")
    assert show(capsysbinary, "shown_model:twice", *options, "--to", "svg")[0] == 0
    status, _, err = show(capsysbinary, "shown_model:twice", *options)
    assert status == USAGE and "--to html or --to svg" in err


def test_programs_and_files_of_programs(here: Path, capsysbinary: Captured) -> None:
    _, out, _ = show(capsysbinary, "shown_model:traced")
    (here / "program.txt").write_text(out)
    assert show(capsysbinary, "program.txt") == (0, out, "")
    assert show(capsysbinary, "shown_model:Model.apply", "--args", "i32[2]")[0] == 0


def test_wide_types_where_they_are_asked_for(here: Path, capsysbinary: Captured) -> None:
    args = ("shown_model:Model.apply", "--args", "f64[3]")
    status, _, err = show(capsysbinary, *args)
    assert status == USAGE and "add --x64" in err and "x is 64 bits wide" in err
    assert "f64[3]" in show(capsysbinary, *args, "--x64")[1]


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["nowhere:f"], "unknown module 'nowhere'"),
        (["nowhere.at.all:f"], "unknown module"),
        ([":f"], "unknown module"),
        (["nowhere.py:f"], "'nowhere.py' does not exist"),
        (["shown_model"], "add the name of a function: shown_model:f"),
        (["shown_model:lose"], "expected: loss"),
        (["shown_model:number"], "is not a function"),
        (["shown_model:traced", "--args", "f32[]"], "omit --args"),
        (["shown_model:loss"], "missing a required argument: 'x'"),
        (["shown_model:loss", "--args", "f32[3"], "column 1"),
        (["shown_model:loss", "--args", "f99[3], f32[3]"], "unknown dtype"),
        (["shown_model:loss", "--args", "f32[3] f32[3]"], "expected: `,`"),
        (["shown_model:loss", "--args", "f32[3], f32[3]", "--passes", "jpv"], "did you mean jvp?"),
        (["shown_model:traced", "--passes", "shown_model:other"], "has no 'other'"),
        (["shown_model:traced", "--passes", "shown_model:number"], "is not a pass"),
        (["shown_model:loss", "--args", "f32[3], f32[3]", "-o", "no/such/file"], "cannot write"),
    ],
)
def test_invalid_targets_are_errors(
    here: Path, capsysbinary: Captured, argv: list[str], found: str
) -> None:
    status, out, err = show(capsysbinary, *argv)
    assert (status, out) == (USAGE, "")
    assert err.startswith("error: ") and found in err
    assert "Traceback" not in err


def test_failures_have_another_status(here: Path, capsysbinary: Captured) -> None:
    status, _, err = show(capsysbinary, "shown_model:loss", "--args", "f32[3], f32[2]")
    assert status == FAILED and "matmul" in err
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        main(["show", "shown_broken:f"])


def test_programs_that_are_not_well_formed_are_not_shown(
    here: Path, capsysbinary: Captured
) -> None:
    asked = ["show", "shown_model:twice", "--args", "f32[]", "--passes", "shown_model:broken"]
    assert main(asked) == FAILED
    assert b"the pass shown_model:broken returns a program that is not well" in (
        capsysbinary.readouterr().err
    )
    (here / "late.txt").write_text("{ lambda ; b:f32[]. let a:f32[] = sin b in (a,) }")
    assert main(["show", "late.txt"]) == FAILED
    assert b"not numbered in the order of binding" in capsysbinary.readouterr().err


def test_values_that_a_function_asks_for_are_static(here: Path, capsysbinary: Captured) -> None:
    for static in ("n", "1", "n, kind"):
        arguments = ("--args", "f32[], 2, kind='cos'", "--static", static)
        status, out, _ = show(capsysbinary, "shown_model:power", *arguments)
        assert status == 0
        assert [eqn.prim.name for eqn in parse(out).eqns] == ["mul", "mul", "cos"]
    assert show(capsysbinary, "shown_model:power", "--args", "f32[], 2")[0] == FAILED
    wrong = ("--args", "f32[], 2", "--static", "m")
    status, _, err = show(capsysbinary, "shown_model:power", *wrong)
    assert status == USAGE and "static_argnames" in err


@pytest.mark.slow
def test_it_runs_as_a_module_and_explains_itself(here: Path) -> None:
    command = [sys.executable, "-m", "effax"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *argv], capture_output=True, text=True, env=environment, check=False
        )

    found = run("show", "--help")
    assert found.returncode == 0
    for part in ("--args", "--passes", "--to", "Ref{f32[3]}", "discharge"):
        assert part in found.stdout
    wrong = run("show", "shown_model:loss", "--to", "pdf")
    assert wrong.returncode == USAGE and "invalid choice: 'pdf'" in wrong.stderr
    shown = run("show", "shown_model:traced", "--to", "html")
    assert shown.returncode == 0 and shown.stdout.endswith("</html>\n")


def test_arguments_are_values_with_types_as_leaves() -> None:
    read = read_arguments("f32[3], (i32[], ), [1, -2.5], {'a': {1: ()}}, (True), k=None, s=\"x\",")
    assert read == Arguments(
        (F3, (array_type((), "int32"),), [1, -2.5], {"a": {1: ()}}, True), {"k": None, "s": "x"}
    )
    assert read_arguments(" Ref{f32[3]} ").args == (ref_type(F3),)
    assert read_arguments("") == Arguments((), {})


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("f32", 1),
        ("f32[3], x y", 9),
        ("(f32[3]", 8),
        ("[f32[3] f32[3]]", 9),
        ("{f32[3]: 1}", 2),
        ("{'a' 1}", 6),
        ("{'a': 1 'b': 2}", 9),
        ("x=1, 2", 6),
        ("x=1, x=2", 6),
        (",", 1),
        (r"f32[], '\x'", 8),
        ("'unended", 1),
        ("(" * 5000, 1),
        ("9" * 5000, 1),
    ],
)
def test_errors_of_arguments_have_a_column(text: str, column: int) -> None:
    with pytest.raises(ParseError) as raised:
        read_arguments(text)
    assert raised.value.column == column
    assert str(raised.value).endswith("^")
