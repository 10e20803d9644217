from __future__ import annotations

import io

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.api.debugging.prompt import Prompt
from effax.debug import explore, prompt


def f(r: jax.Ref, x: jax.Array) -> jax.Array:
    def body(c: jax.Array, a: jax.Array) -> tuple[jax.Array, None]:
        r[0] += a
        return jnp.log(c) - a, None

    c, _ = jax.lax.scan(body, x, jnp.arange(3.0))
    return c


def dialogue(*commands: str) -> list[str]:
    """Run commands, and return the output of each, the first position before."""
    out = io.StringIO()
    session = explore(f)(jax.new_ref(jnp.zeros(2)), np.float32(2))
    prompt(session, io.StringIO("\n".join(commands)), out)
    return out.getvalue().split("(effax) ")


def answer(*commands: str) -> str:
    """Return the output of the last command."""
    return dialogue(*commands)[-1].partition("\n")[2]


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (["step"], "after 1 equations"),
        (["s 1", "into"], "f > scan, iteration 0"),
        (["s", "i", "out"], "f, after"),
        (["continue"], "f returned (nan)"),
        (["c 3"], "3 equations"),
        (["c", "restart"], "f, after 0 equations"),
        (["b primitive log", "c", "run"], "f > scan, iteration 0"),
        (["step", "back"], "after 0 equations"),
        (["c", "back 2"], "f > scan, iteration 2"),
        (["c", "undo"], "after 0 equations"),
        (["find nan"], "nan in its result\nf > scan, iteration 2"),
        (["break primitive log"], "break 1: primitive log"),
        (["break 1 if x > 3"], "break 1: equation 1 if x > 3"),
        (["break c"], "break 1: equation 0"),
        (["break write r if value > 0"], "break 1: write r if value > 0"),
        (["break if nan", "c"], "break 1: any equation if nan\nf > scan, iteration 2"),
        (["break if nan", "break c", "breaks"], "1: any equation if nan\n2: equation 0"),
        (["break if nan", "clear 1"], "no breaks"),
        (["print x * 2"], "f32[] = 4."),
        (["p r"], "Ref{f32[2]} = [0., 0.]"),
        (["stats r"], "2 of 2 zero"),
        (["c", "history r"], "[0]: 0. -> 1.   addupdate in scan, iteration 1   test_prompt.py"),
        (["c", "origin d"], "log"),
        (["s", "i", "where"], "* f > scan, iteration 0"),
        (["s", "i", "up"], "iota"),
        (["s", "i", "up", "down"], "a[0] += c"),
        (["list all"], "->   0"),
        (["values"], "r) = [0., 0.]"),
        (["program"], "{ lambda"),
        (["c", "result"], "nan"),
        (["help"], "break PLACE [if CONDITION]"),
        (["help b"], "break line model.py:12"),
        (["# a comment", "", "step"], "after 1 equations"),
    ],
    ids=lambda x: "; ".join(x) if isinstance(x, list) else "",
)
def test_each_command(commands: list[str], expected: str) -> None:
    assert expected in answer(*commands)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("contineu", "expected: `continue`"),
        ("help contineu", "expected: `continue`"),
        ("step x", "not a number of equations"),
        ("step 0", "not a number of equations"),
        ("out 3", "takes no arguments"),
        ("print", "print takes a name"),
        ("print nothing", "NameError"),
        ("history x", "not a reference"),
        ("break somewhere else", "not a place for a break"),
        ("break if value >", "not an expression"),
        ("break", "at one place, or has a condition"),
        ("clear 3", "no break 3"),
        ("up", "out of range"),
        ("result", "has not ended"),
        ("find everything", "name of one"),
    ],
)
def test_wrong_commands_change_nothing(command: str, expected: str) -> None:
    shown = dialogue("step", command, "where")
    assert "error: " in shown[2]
    assert expected in shown[2]
    assert "->   1" in shown[3]


def test_every_command_has_help() -> None:
    commands = [name for name in dir(Prompt) if name.startswith("do_")]
    for name in commands:
        shown = answer(f"help {name[3:]}")
        assert shown.startswith((f"{name[3:]} ", f"{name[3:]}:"))


def test_the_end_of_the_input_is_the_end_and_quit_ends_before_it() -> None:
    assert len(dialogue("quit", "step")) == 2
    out = io.StringIO()
    session = explore(f)(jax.new_ref(jnp.zeros(2)), np.float32(2))
    assert prompt(session, io.StringIO("step\n"), out).state.steps == 1
