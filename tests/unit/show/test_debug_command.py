"""``python -m effax debug``: arguments, commands and errors."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from effax.show.command import FAILED, USAGE, main

MODULE = """
import effax
import effax.numpy as jnp


def step(params, x, *, scale=1.0):
    params["w"][...] += scale * x
    return jnp.sum(jnp.log(params["w"][...]))


def power(x, n, kind="sin"):
    return getattr(jnp, kind)(x) ** n


def choose(x, i, b, z):
    return x[i] * b + jnp.abs(z)


program = effax.make_jaxpr(jnp.sin)(1.0)
number = 3
"""

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "debugged.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def debug(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, commands: str, *argv: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(commands))
    status = main(["debug", *argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_commands_from_a_pipe(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    args = '{"w": Ref{f32[3]}}, f32[3], scale=2.0'
    commands = 'break primitive log\ncontinue\nhistory params["w"]\nprint scale\n'
    status, out, err = debug(capsys, monkeypatch, commands, "debugged:step", "--args", args)
    assert (status, err) == (0, "")
    for part in (
        "(effax) continue",
        "break 1: primitive log",
        "debugged.py:8",
        "addupdate",
        "= 2.",
    ):
        assert part in out


def test_commands_from_a_file_and_the_status_of_a_failed_one(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "session.txt").write_text("step\nfoo\n")
    argv = ("debugged:power", "--args", "f32[2], 3", "--commands", "session.txt")
    status, out, _ = debug(capsys, monkeypatch, "", *argv)
    assert status == FAILED
    assert "unknown command 'foo'" in out


def test_random_arrays_have_a_seed(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("debugged:choose", "--args", "f32[20], i32[3], bool[3], c64[3]")
    first, again, other = (
        debug(capsys, monkeypatch, "values\n", *argv, "--seed", seed)[1] for seed in "001"
    )
    assert first == again != other


def test_strings_are_static(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("debugged:power", "--args", "f32[2], 3, kind='cos'")
    assert "cos" in debug(capsys, monkeypatch, "list all\n", *argv)[1]


def test_arguments_from_a_file(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    w, x = np.zeros(3, np.float32), np.arange(3, dtype=np.float32)
    np.savez(here / "data.npz", allow_pickle=False, **{"params.w": w, "x": x})
    argv = ("debugged:step", "--args", "data.npz", "--refs", "params.w")
    status, out, _ = debug(capsys, monkeypatch, "continue\nhistory params['w']\n", *argv)
    assert status == 0
    assert "[0., 0., 0.] -> [0., 1., 2.]" in out
    np.savez(here / "position.npz", x, np.float32(2))
    by_position = ("debugged:power", "--args", "position.npz")
    assert "returned" in debug(capsys, monkeypatch, "c\n", *by_position)[1]


def test_programs_are_debugged(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "p.txt").write_text("{ lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }")
    assert "returned" in debug(capsys, monkeypatch, "c\n", "p.txt")[1]
    assert "sin" in debug(capsys, monkeypatch, "list\n", "debugged:program", "--args", "0.5")[1]


def test_the_first_nan(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("debugged:step", "--args", '{"w": Ref{f32[3]}}, f32[3]')
    status, out, _ = debug(capsys, monkeypatch, "", *argv, "--first", "nan")
    assert status == 0
    assert "nan in step, at [1]" in out
    assert "log a in (b,)" in out
    assert "inf is not found" in debug(capsys, monkeypatch, "", *argv, "--first", "inf")[1]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["debugged:nothing"], "has no 'nothing'"),
        (["debugged:number"], "not a function"),
        (["debugged:step", "--args", "f32[3]"], "missing a required argument"),
        (["debugged:step", "--args", "f32[3"], "expected"),
        (["debugged:step", "--args", "none.npz"], "cannot read the arguments"),
        (["debugged:power", "--args", "f32[2], 3", "--refs", "x"], "--refs names arguments"),
        (["debugged:power", "--args", "f32[2], 3", "--commands", "none"], "cannot read the comm"),
        (["debugged:power", "--args", "f32[2], 3", "--first", "zero"], "name of one"),
    ],
)
def test_usage_errors(
    argv: list[str], expected: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, _, err = debug(capsys, monkeypatch, "", *argv)
    assert status == USAGE
    assert expected in err
