"""What ``module:function`` names, and the program that it is for arguments of given types."""

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
    """The program that ``target`` is.

    Args:
        target: ``module:function``, ``file.py:function``, the name of a program in place of the
            function, or a file that holds the text of a program.
        arguments: types of the function's arguments, as :func:`read_arguments` takes them.
        static: names or positions of arguments that are values, with commas between them.

    Raises:
        BadArgument: there is no such thing, or the arguments do not fit.
        ParseError: the arguments or the file cannot be read.
        IllTyped: the program is not well formed.
        EffaxError: what tracing the function raises.
    """
    found = named(target) if ":" in target else _parsed(target)
    if isinstance(found, ClosedJaxpr):
        found = found.jaxpr
    if isinstance(found, Jaxpr):
        if arguments is not None:
            raise BadArgument(
                f"{target} is a program already", "no arguments", arguments, "leave --args out"
            )
        return checked(found)
    if not callable(found):
        raise BadArgument(
            f"{target} is no function", "a callable or a jaxpr", f"{type(found).__name__}"
        )
    return traced(found, read_arguments(arguments or ""), static)


def named(target: str) -> object:
    """What ``module:name`` is. Raises BadArgument where there is no such thing."""
    place, _, name = target.rpartition(":")
    return _attribute(_module(place), place, name)


def traced(fun: Callable[..., object], given: Arguments, static: str = "") -> Jaxpr:
    """The program of ``fun`` for arguments that are types.

    Strings, and the arguments that ``static`` names, are values while the function is traced.

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
            remedy='tell the types of its arguments: --args "f32[3], i32[]"',
        ) from None
    call, args, kwargs = _static(fun, given, static).split(fun, *given)
    leaves, treedef = tree.flatten((args, kwargs))
    names = arg_names(call, args, kwargs, len(leaves))
    types = [_type(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
    return trace_flat(call, treedef, types, names, label_of(fun)).jaxpr


def _static(fun: Callable[..., object], given: Arguments, told: str) -> StaticArgs:
    """The arguments that are told to be values, and those that are strings."""
    words = [word.strip() for word in told.split(",") if word.strip()]
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
    """The program in a file."""
    file = Path(path)
    if file.suffix == ".py" or not file.is_file():
        raise BadArgument(
            f"{path} does not say what to show",
            expected="module:function, or a file with the text of a program",
            remedy=f"add the name of a function: {path}:f",
        )
    return parse(file.read_text(encoding="utf-8"))


def _module(name: str) -> ModuleType:
    """The module of that name, or of that file."""
    if name.endswith(".py"):
        return _module_of_file(Path(name))
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # A module that the module itself lacks is another matter, which its traceback tells.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    except ValueError:
        pass
    raise BadArgument(
        f"there is no module {name!r}",
        expected="a module that can be imported from here, or a file: path/to/file.py:function",
        remedy="check the spelling, or run it in the folder of the module",
    )


def _module_of_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise BadArgument(f"there is no file {str(path)!r}", expected="a file of Python code")
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, place: str, name: str) -> object:
    """What a dotted name is inside of a module."""
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
