"""The command ``python -m effax debug module:function``: a prompt for the evaluation of a call."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import numpy as np

from effax import tree
from effax.api.debugging.calls import call_of
from effax.api.debugging.explore import found_in
from effax.api.debugging.prompt import Prompt
from effax.api.debugging.session import first_session
from effax.api.static import StaticArgs
from effax.arrays.ref_functions import new_ref
from effax.arrays.tracing import label_of
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument
from effax.ir.eval.stepping.watch import test_of
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.types import ArrayType, RefType
from effax.show.arguments import Arguments, read_arguments
from effax.show.target import found_at, static_arguments

if TYPE_CHECKING:
    from argparse import _SubParsersAction

EXAMPLES: Final = """examples:
  python -m effax debug train:step --args "f32[8,3], Ref{f32[3]}, 0.1"
  python -m effax debug train:step --args batch.npz --refs weights
  python -m effax debug model.py:loss --args "f32[3]" --first nan
  python -m effax debug model.py:loss --args "[1.0, 2.0], x=3" --commands session.txt

a type (f32[3,4], i32[8], bool[2]) is an array of random numbers, Ref{f32[3]} is a reference to one;
numbers, tuples, lists and dicts are values; a file .npz has arguments by name ("params.w" is
params["w"]), or by position as arr_0, arr_1, ...; the file of a program needs no arguments
"""


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> None:
    """Add the command to those of the command line."""
    debug = commands.add_parser(
        "debug",
        help="evaluate a function an equation at a time, by commands",
        description="Evaluate a function an equation at a time, by commands at a prompt.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    debug.add_argument(
        "target",
        help="module:function, file.py:function, or a file with the text of a program",
    )
    debug.add_argument("--args", metavar="VALUES", help="the function's arguments, or a file .npz")
    debug.add_argument(
        "--refs", metavar="NAMES", default="", help="arguments of a file that become references"
    )
    debug.add_argument(
        "--static",
        metavar="NAMES",
        default="",
        help="arguments that are not traced: names or positions, with commas between them; "
        "strings are",
    )
    debug.add_argument("--seed", type=int, default=0, help="the seed of random arrays (default: 0)")
    debug.add_argument(
        "--first",
        metavar="PREDICATE",
        help="only report the first equation with nan, inf or out_of_bounds",
    )
    debug.add_argument(
        "--commands", metavar="FILE", type=Path, help="read commands from a file, not from a prompt"
    )
    debug.add_argument("--x64", action="store_true", help="allow types that are 64 bits wide")


def debug(asked: Namespace) -> int:
    """Run the command; return 1 if a command of a script failed, else 0.

    Raises:
        BadArgument: the target does not exist, or an argument does not fit.
        ParseError: the arguments do not parse.
    """
    fun = found_at(asked.target)
    if isinstance(fun, Jaxpr | ClosedJaxpr):
        given = _inputs(fun, asked.args)
        static = StaticArgs((), ())
    elif callable(fun):
        given = _arguments(fun, asked)
        _check_fit(fun, given)
        static = static_arguments(fun, given, asked.static)
    else:
        raise BadArgument(
            f"{asked.target} is not a function", "a callable or a jaxpr", type(fun).__name__
        )
    values = _drawn(given, np.random.default_rng(asked.seed))
    call = call_of(fun, values.args, values.kwargs, static)
    if asked.first is not None:
        found = found_in(call, test_of(asked.first))
        shown = f"{asked.first} is not found" if found is None else f"{found}\n{found.text}"
        sys.stdout.write(f"{shown}\n")
        return 0
    made = Prompt(first_session(call), _script(asked.commands))
    made.cmdloop()
    return int(made.failed and not made.use_rawinput)


def _script(path: Path | None) -> TextIO | None:
    """Return the commands of a file; None for those of standard input."""
    try:
        return None if path is None else StringIO(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadArgument(f"cannot read the commands in {path}", found=error.strerror) from None


def _arguments(fun: Callable[..., object], asked: Namespace) -> Arguments:
    text = (asked.args or "").strip()
    if not text.endswith(".npz"):
        if asked.refs:
            raise BadArgument(
                "--refs names arguments of a file",
                expected="--args data.npz",
                found=f"--args {text!r}",
                remedy="write the type of a reference: Ref{f32[3]}",
            )
        return read_arguments(text)
    return _of_file(Path(text), [n.strip() for n in asked.refs.split(",") if n.strip()])


def _of_file(path: Path, refs: Sequence[str]) -> Arguments:
    """Return the arguments that a file has."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            arrays = {name: saved[name] for name in saved.files}
    except (OSError, ValueError) as error:
        raise BadArgument(
            f"cannot read the arguments in {path}", "a file of numpy.savez", str(error)
        ) from None
    unknown = [name for name in refs if name not in arrays]
    if unknown:
        raise BadArgument(
            f"the file has no {unknown[0]!r}, which is to be a reference",
            expected=", ".join(sorted(arrays)),
        )
    values = {name: new_ref(x) if name in refs else x for name, x in arrays.items()}
    by_position = [f"arr_{i}" for i in range(len(values)) if f"arr_{i}" in values]
    named: dict[str, object] = {}
    for name in [name for name in values if name not in by_position]:
        _put(named, name.split("."), values[name], name)
    return Arguments(tuple([values[name] for name in by_position]), named)


def _put(into: dict[str, object], keys: Sequence[str], value: object, name: str) -> None:
    """Put a value under nested keys."""
    for key in keys[:-1]:
        inner = into.setdefault(key, {})
        if not isinstance(inner, dict):
            raise BadArgument(f"{name} is both an array and a dict of arrays", found=name)
        into = inner
    into[keys[-1]] = value


def _inputs(program: Jaxpr | ClosedJaxpr, text: str | None) -> Arguments:
    """Return the arguments of a program; without a text, its types."""
    if text:
        return read_arguments(text)
    if isinstance(program, ClosedJaxpr):
        return Arguments(program.jaxpr.in_types[len(program.consts) :], {})
    return Arguments(program.in_types, {})


def _check_fit(fun: Callable[..., object], given: Arguments) -> None:
    try:
        signature(fun).bind(*given.args, **given.kwargs)
    except TypeError as error:
        raise BadArgument(
            f"{label_of(fun)} does not take these arguments: {error}",
            expected=f"{label_of(fun)}{signature(fun)}",
            remedy='pass its arguments, or their types: --args "f32[3], 0.5"',
        ) from None


def _drawn(given: Arguments, rng: np.random.Generator) -> Arguments:
    """Return the arguments with random arrays in the place of types."""

    def drawn(x: object) -> object:
        if isinstance(x, RefType):
            return new_ref(_random(rng, x.inner))
        return _random(rng, x) if isinstance(x, ArrayType) else x

    leaves, structure = tree.flatten((given.args, given.kwargs))
    args, kwargs = tree.unflatten(structure, list(map(drawn, leaves)))
    return Arguments(args, kwargs)


def _random(rng: np.random.Generator, type_: ArrayType) -> np.ndarray:
    """Return standard normal numbers, or integers from 0 to 9, or booleans."""
    shape = type_.shape
    match family(type_.dtype):
        case "bool":
            return rng.integers(0, 2, shape).astype(type_.dtype)
        case "int" | "uint":
            return rng.integers(0, 10, shape).astype(type_.dtype)
        case "complex":
            real, imag = rng.standard_normal(shape), rng.standard_normal(shape)
            return np.asarray(real + 1j * imag).astype(type_.dtype)
        case _:
            return np.asarray(rng.standard_normal(shape)).astype(type_.dtype)
