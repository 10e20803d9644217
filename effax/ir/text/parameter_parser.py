"""Parsing of the parameters of primitives, by their annotations, and of index brackets."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from enum import Enum
from typing import Final, NoReturn, cast, get_args

from effax.ir.dtypes import FLOAT0, DType, as_dtype, dtype_of_short_name, dtype_words
from effax.ir.errors import EffaxError
from effax.ir.field_types import annotations_of, type_mismatch
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span, whole
from effax.ir.primitive import ByReference, Primitive
from effax.ir.state import cached
from effax.ir.symbolic import max_dim
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.text.dims import read_dim
from effax.ir.text.format import DYNAMIC, LABEL, REFERENCE, fields_of
from effax.ir.text.lexer import LITERAL, NAME, NUMBER, TYPE, WORD, Lexer, short_text
from effax.ir.types import Shape

_LABEL: Final = re.compile(r"<?[\w.]+>?")
QUOTED: Final = re.compile("b?['\"]")
"""The beginning of a string."""

_ESCAPE: Final = r"\\(?:[\\'\"abfnrtv0]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = re.compile(rf"""b?(?:'(?:[^'\\\n\0]|{_ESCAPE})*'|"(?:[^"\\\n\0]|{_ESCAPE})*")""")
_INTEGER: Final = re.compile(r"-?\d+", re.ASCII)
_REACH: Final = re.compile(r"[-+]\d+", re.ASCII)
_SYMBOLIC: Final = re.compile(r"<([^<>]*)>")
_CONSTANTS: Final[Mapping[str, object]] = {"True": True, "False": False, "None": None}

ReadAtom = Callable[[], Atom]
ReadNested = Callable[[], Jaxpr | ByReference | None]


def read_params(scan: Lexer, prim: type[Primitive], nested: ReadNested, start: int) -> Primitive:
    """Read ``[a=1 b=2]``, or nothing, and make the primitive.

    Args:
        scan: the text; the position is where the brackets may be.
        prim: the primitive's class, of which the fields are the parameters.
        nested: reads a program if one is next, written out or by name, or an object's name.
        start: the position of the primitive's name, for errors.
    """
    known = {f.name: f for f in fields_of(prim)}
    values: dict[str, object] = {}
    if scan.take("["):
        while not scan.take("]"):
            here = scan.pos
            shown = scan.match(WORD, "a parameter").group()
            field = LABEL if shown == "name" and LABEL in known else shown
            if field not in known or field in values:
                twice = "twice" if field in values else "among its parameters"
                scan.fail(
                    f"{prim.name} does not have {shown} {twice}",
                    expected=", ".join(sorted(known)) or "no parameters",
                    pos=here,
                )
            scan.expect("=", "a parameter")
            values[field] = _field(scan, prim, field, shown, nested)
    missing = [
        name
        for name, f in known.items()
        if name not in values and f.default is MISSING and f.default_factory is MISSING
    ]
    if missing:
        scan.fail(f"{prim.name} lacks parameters", expected=", ".join(missing), pos=start)
    try:
        return prim(**values)
    except EffaxError as error:
        scan.failed(error, start)
    except UNFIT as error:
        unfit(scan, prim, error, start)


UNFIT: Final = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""The errors that Python raises for a parameter of another type than a primitive expects."""


def unfit(scan: Lexer, prim: Primitive | type[Primitive], error: Exception, pos: int) -> NoReturn:
    """Raise the ParseError for parameters that the primitive does not accept."""
    known = ", ".join(f.name for f in fields_of(prim)) or "none"
    scan.fail(
        f"the parameters of {prim.name} are invalid",
        expected=f"{known}, as they print",
        found=f"{type(error).__name__}: {error}",
        pos=pos,
    )


def named_parameter(scan: Lexer, objects: Mapping[str, object]) -> ByReference:
    """Read the name of an object that is a parameter, and return the object."""
    start = scan.pos
    found = named_object(scan, objects)
    if not isinstance(found, ByReference):
        scan.fail(
            "the object of this name is no parameter",
            expected="a `ByReference`",
            found=f"{type(found).__name__}",
            pos=start,
        )
    return found


def named_object(scan: Lexer, objects: Mapping[str, object]) -> object:
    """Read the name of an object, such as ``@log``, and return the object."""
    start = scan.pos
    scan.expect(REFERENCE, "the name of an object")
    name = scan.match(WORD, "the name of an object").group()
    if name not in objects:
        scan.fail(
            "the text names a Python object that was not passed",
            expected=", ".join(objects) or "the objects, by name",
            found=f"`{REFERENCE}{name}`",
            remedy="pass it: `references=references(jaxpr)`",
            pos=start,
        )
    return objects[name]


def _field(scan: Lexer, owner: type, field: str, shown: str, nested: ReadNested) -> object:
    """Return the value of one field, which must match the annotation of the class."""
    start = scan.pos
    try:
        value = _label(scan) if field == LABEL else read_value(scan, owner, nested)
        wanted = type_mismatch(owner, field, value)
        if wanted is not None:
            text = " ".join(scan.text[start : scan.pos].split())
            scan.fail(
                f"{shown} has another type",
                expected=wanted,
                found=f"`{short_text(text)}`",
                pos=start,
            )
    except EffaxError:
        raise
    except RecursionError:
        scan.fail("values are nested too deeply", pos=start)
    return value


def _label(scan: Lexer) -> object:
    return read_string(scan) if scan.looking(QUOTED) else scan.match(_LABEL, "a label").group()


def read_string(scan: Lexer) -> object:
    """Return a string, or bytes, as ``repr`` writes them."""
    start = scan.pos
    found = scan.looking(_STRING)
    if found is None:
        _no_string(scan, start)
    try:
        value: object = literal_eval(found.group())
    except (ValueError, SyntaxError):
        _no_string(scan, start)
    scan.advance(found)
    return value


def _no_string(scan: Lexer, pos: int) -> NoReturn:
    scan.fail("invalid string", expected="quotes, and escapes as `repr` writes", pos=pos)


def read_value(scan: Lexer, owner: type, nested: ReadNested) -> object:
    """Read one value; enums and records are those in the annotations of ``owner``."""
    known = nested()
    if known is not None:
        return known
    number = scan.looking(NUMBER)
    if number is not None:
        return scan.parameter(number)
    if scan.looking(QUOTED):
        return read_string(scan)
    if scan.at("["):
        return read_index(scan, None, None)[0]
    if scan.take("("):
        return _tuple(scan, owner, nested)
    if scan.looking(TYPE):
        return scan.type()
    if scan.looking(_SYMBOLIC):
        return _integer(scan)
    return _word(scan, owner, nested)


def _tuple(scan: Lexer, owner: type, nested: ReadNested) -> object:
    items: list[object] = []
    while not scan.take(")"):
        items.append(read_value(scan, owner, nested))
        # Programs are separated by spaces, as in JAX; all other values by commas.
        comma = scan.take(",") or isinstance(items[-1], Jaxpr)
        if not comma and not scan.at(")"):
            scan.fail("unexpected text in a tuple", expected="`,` or `)`")
    return tuple(items)


def _word(scan: Lexer, owner: type, nested: ReadNested) -> object:
    start = scan.pos
    word = scan.match(WORD, "a value").group()
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word == "frozenset" and scan.take("("):
        return _frozenset(scan, owner, nested)
    if word in dtype_words():
        return _dtype(scan, word, start)
    cls = classes_of(owner).get(word)
    if cls is None:
        scan.fail(
            "unknown value",
            expected="a number, a string, a tuple, a dtype, a type, a program or a record",
            found=f"`{word}`",
            pos=start,
        )
    if issubclass(cls, Enum):
        scan.expect(".", f"a member of {word}")
        member = scan.match(WORD, f"a member of {word}").group()
        if member not in cls.__members__:
            scan.fail(f"unknown member of {word}", expected=", ".join(cls.__members__), pos=start)
        return cls[member]
    return _record(scan, cls, nested)


def _dtype(scan: Lexer, word: str, start: int) -> DType:
    """Return the dtype of a parameter, which has its full name."""
    if word == "float0":
        return FLOAT0
    try:
        return as_dtype(word)
    except TypeError:
        full = dtype_of_short_name(word).name
        scan.fail("the dtype of a parameter has its full name", expected=f"`{full}`", pos=start)


def _frozenset(scan: Lexer, owner: type, nested: ReadNested) -> frozenset[object]:
    scan.expect("{", "a set")
    items: list[object] = []
    while not scan.take("}"):
        items.append(read_value(scan, owner, nested))
        scan.take(",")
    scan.expect(")", "a set")
    return frozenset(items)


def _record(scan: Lexer, cls: type, nested: ReadNested) -> object:
    start = scan.pos
    scan.expect("(", cls.__name__)
    values: dict[str, object] = {}
    while not scan.take(")"):
        name = scan.match(WORD, f"a field of {cls.__name__}").group()
        scan.expect("=", f"a field of {cls.__name__}")
        values[name] = _field(scan, cls, name, name, nested)
        scan.take(",")
    try:
        made: object = cls(**values)
    except TypeError as error:
        scan.fail(str(error), pos=start)
    return made


@cached(maxsize=None)
def classes_of(owner: type) -> Mapping[str, type]:
    """Return the enums and records among the annotations of a class, by name."""
    found: dict[str, type] = {}
    todo: list[object] = list(annotations_of(owner).values())
    while todo:
        hint = todo.pop()
        todo.extend(get_args(hint))
        if isinstance(hint, type) and (
            issubclass(hint, Enum) or hasattr(hint, "_fields") or is_dataclass(hint)
        ):
            found[hint.__name__] = hint
    return found


def read_index(
    scan: Lexer, shape: Shape | None, operand: ReadAtom | None
) -> tuple[Indexer, list[Atom]]:
    """Read ``[i,2,:3,j:j+4]`` or ``[...]``, with ``;wrap`` and ``;drop`` for these modes.

    Args:
        scan: the text; the position is that of the bracket.
        shape: the shape of the indexed value, or None if it is unknown: then no end is omitted.
        operand: reads an operand; if None, each operand is written ``*``.
    """
    scan.expect("[", "an index")
    operands: list[Atom] = []
    dims: list[Dim] = []
    if shape is not None and scan.take("..."):
        dims.extend(whole(shape).dims)
    while not scan.at("]") and not scan.at(";"):
        size = shape[len(dims)] if shape is not None and len(dims) < len(shape) else None
        dims.append(_dim(scan, size, operand, operands))
        if not scan.take(",") and not scan.at("]") and not scan.at(";"):
            scan.fail("unexpected text in an index", expected="`,` or `]`")
    mode = Mode.CLIP
    while scan.take(";"):
        may_wrap = Pick(None) in dims
        if may_wrap and scan.take("wrap"):
            dims = _wrapping(scan, dims)
        else:
            mode = _mode(scan, may_wrap)
    scan.expect("]", "an index")
    return Indexer(tuple(dims), mode), operands


def _wrapping(scan: Lexer, dims: Sequence[Dim]) -> list[Dim]:
    """Return the entries, picks of operands wrapping: all, or those in parentheses."""
    picks = [i for i, d in enumerate(dims) if d == Pick(None)]
    chosen = picks
    if scan.take("("):
        chosen = []
        while not scan.take(")"):
            start = scan.pos
            k = _integer(scan)
            if k is None or not 0 <= k < len(picks):
                scan.fail("unknown pick", expected=f"a number below {len(picks)}", pos=start)
            chosen.append(picks[k])
            scan.take(",")
    return [Pick(None, True) if i in chosen else d for i, d in enumerate(dims)]


def _mode(scan: Lexer, may_wrap: bool) -> Mode:
    start = scan.pos
    word = scan.match(WORD, "a mode").group()
    if word not in [mode.value for mode in Mode]:
        modes = [*(["wrap"] if may_wrap else []), *(m.value for m in Mode)]
        scan.fail("unknown mode", expected=", ".join(modes), pos=start)
    return Mode(word)


def _dim(scan: Lexer, size: int | None, operand: ReadAtom | None, operands: list[Atom]) -> Dim:
    start = scan.pos
    if operand is None and scan.take(DYNAMIC):
        return _dynamic(scan, DYNAMIC)
    if operand is not None and (scan.looking(LITERAL) or scan.looking(NAME)):
        operands.append(operand())
        return _dynamic(scan, scan.text[start : scan.pos].rstrip())
    first = _integer(scan)
    if not scan.take(":"):
        if first is None:
            scan.fail("an index is missing", expected="a variable, an integer or a slice")
        return Pick(first)
    return _static_span(scan, first or 0, size)


def _dynamic(scan: Lexer, start: str) -> Dim:
    """Return the rest of ``i`` or of ``i:i+6:2``, after ``i``."""
    if not scan.take(":"):
        return Pick(None)
    scan.expect(start, "a slice from a variable")
    found = scan.looking(_REACH)
    if found is None:
        scan.fail("the size of a slice is missing", expected="`+` or `-`, and an integer")
    reach = scan.position(found)
    step = _step(scan)
    if reach % step or reach // step < 0:
        scan.fail(
            "the size of a slice is not a multiple of its step", expected=f"a multiple of {step}"
        )
    return Span(None, reach // step, step)


def _static_span(scan: Lexer, first: int, size: int | None) -> Span:
    """Return the rest of ``first:stop:step``, after the colon."""
    here = scan.pos
    stop = _integer(scan)
    step = _step(scan)
    if stop is None:
        if step > 0 and size is None:
            scan.fail("the end of a slice is missing", expected="an integer", pos=here)
        stop = size if step > 0 else -1
    return Span(first, _steps(first, cast(int, stop), step), step)


def _steps(first: int, stop: int, step: int) -> int:
    """Return ``len(range(first, stop, step))``, also where Python's length overflows."""
    return max_dim(0, -((first - stop) // step))


def _step(scan: Lexer) -> int:
    if not scan.take(":"):
        return 1
    here = scan.pos
    step = _integer(scan)
    if step == 0:
        scan.fail("the step of a slice is 0", expected="a nonzero step", pos=here)
    return 1 if step is None else step


def _integer(scan: Lexer) -> int | None:
    size = scan.looking(_SYMBOLIC)
    if size is not None:
        scan.advance(size)
        return read_dim(size.group(1), scan.scope)
    found = scan.looking(_INTEGER)
    return None if found is None else scan.position(found)
