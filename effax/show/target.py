"""Import ``module:function``, and trace it for arguments of given types."""

from __future__ import annotations

import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType

from effax import tree
from effax.api.captures import named_captures
from effax.api.static import StaticArgs
from effax.arrays.config import allowed
from effax.arrays.tracing import arg_names, input_type, label_of, trace_flat
from effax.ir.analysis.check import checked
from effax.ir.errors import BadArgument
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.text.parser import parse
from effax.ir.types import ArrayType, RefType, Type
from effax.show.arguments import Arguments, read_arguments


def program_of(target: str, arguments: str | None, static: str = "") -> Jaxpr:
    """Return the program of ``target``.

    Args:
        target: ``module:function``, ``file.py:function``, the name of a program instead of a
            function, or a file with the text of a program.
        arguments: types of the function's arguments, as text for :func:`read_arguments`.
        static: comma-separated names or positions of static arguments.

    Raises:
        BadArgument: the target does not exist, or the arguments do not fit.
        ParseError: the arguments or the file do not parse.
        IllTyped: the program is not well formed.
        EffaxError: tracing failed.
    """
    found = found_at(target)
    if isinstance(found, ClosedJaxpr):
        found = found.jaxpr
    if isinstance(found, Jaxpr):
        if arguments is not None:
            raise BadArgument(
                f"{target} is a program, not a function", "no arguments", arguments, "omit --args"
            )
        return checked(found)
    if not callable(found):
        raise BadArgument(
            f"{target} is not a function", "a callable or a jaxpr", f"{type(found).__name__}"
        )
    return traced(found, read_arguments(arguments or ""), static)


def found_at(target: str) -> object:
    """Return the object ``module:name``, or the program in a file.

    Raises:
        BadArgument: it does not exist.
        ParseError: the file does not parse.
    """
    return named(target) if ":" in target else _parsed(target)


def named(target: str) -> object:
    """Import the object ``module:name``. Raise BadArgument if it does not exist."""
    place, _, name = target.rpartition(":")
    return _attribute(_module(place), place, name)


def traced(fun: Callable[..., object], given: Arguments, static: str = "") -> Jaxpr:
    """Trace ``fun`` for arguments that are types.

    Strings, and the arguments that ``static`` names, are static.

    Raises:
        BadArgument: the function does not take these arguments; a type is 64 bits wide while such
            types are not enabled.
    """
    try:
        signature(fun).bind(*given.args, **given.kwargs)
    except TypeError as error:
        raise BadArgument(
            f"{label_of(fun)} does not take these arguments: {error}",
            expected=f"{label_of(fun)}{signature(fun)}",
            remedy='pass the types of its arguments: --args "f32[3], i32[]"',
        ) from None
    call, args, kwargs = static_arguments(fun, given, static).split(fun, *given)
    leaves, treedef = tree.flatten((args, kwargs))
    names = arg_names(call, args, kwargs, len(leaves))
    types = [_type(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
    return named_captures(fun, trace_flat(call, treedef, types, names, label_of(fun)))


def static_arguments(fun: Callable[..., object], given: Arguments, static: str) -> StaticArgs:
    """Return the static arguments: those that ``static`` names, and strings."""
    words = [word.strip() for word in static.split(",") if word.strip()]
    nums = [int(word) for word in words if word.isdecimal()]
    names = [word for word in words if not word.isdecimal()]
    nums += [i for i, value in enumerate(given.args) if isinstance(value, str)]
    names += [name for name, value in given.kwargs.items() if isinstance(value, str)]
    return StaticArgs.of(fun, nums, names)


def _type(leaf: object, name: str) -> Type:
    if not isinstance(leaf, ArrayType | RefType):
        return input_type(leaf, name)
    if allowed(leaf.dtype) != leaf.dtype:
        raise BadArgument(
            f"{name} is 64 bits wide, and such types are not enabled",
            expected=str(allowed(leaf.dtype)),
            found=str(leaf),
            remedy="add --x64",
        )
    return leaf


def _parsed(path: str) -> Jaxpr:
    """Parse the program in a file."""
    file = Path(path)
    if file.suffix == ".py" or not file.is_file():
        raise BadArgument(
            f"{path} is not the file of a program",
            expected="module:function, or a file with the text of a program",
            remedy=f"add the name of a function: {path}:f",
        )
    return parse(file.read_text(encoding="utf-8"))


def _module(name: str) -> ModuleType:
    """Import a module by its name or file."""
    if name.endswith(".py"):
        return _module_of_file(Path(name))
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # An import that fails inside the module is raised with its traceback.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    except ValueError:
        pass
    raise BadArgument(
        f"unknown module {name!r}",
        expected="a module that can be imported, or a file: path/to/file.py:function",
        remedy="check the spelling, or run the command in the folder of the module",
    )


def _module_of_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise BadArgument(f"the file {str(path)!r} does not exist", expected="a Python file")
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, place: str, name: str) -> object:
    """Return the object of a dotted name in a module."""
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            close = get_close_matches(part, [n for n in dir(found) if not n.startswith("_")], 3)
            raise BadArgument(
                f"{place} has no {name!r}",
                expected=" or ".join(close) if close else "the name of a function of the module",
            )
        found = getattr(found, part)
    return found
