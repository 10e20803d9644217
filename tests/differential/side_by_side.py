"""Run one case in both libraries and compare all visible properties of the results."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

Case = Callable[[Any, Any], object]
"""A function of a namespace (``jax`` or ``effax``) and its numpy that returns a tree of results."""


class Leaf(NamedTuple):
    """The compared properties of an array or a reference."""

    kind: str
    dtype: str
    weak: bool
    value: np.ndarray


class Program(NamedTuple):
    """A printed jaxpr, as a result of a case."""

    text: str


class Raised(NamedTuple):
    """The built-in class of the error that a call raised, as a result of a case."""

    base: str


BUILTIN = (TypeError, ValueError, IndexError, RecursionError)


EXPLAINED = (
    # effax shows weak types, so that a program can be parsed back.
    (r"~(?=[a-z])", ""),
    # Other parameters of primitives with subjaxprs depend on the version of JAX.
    (r"(?<=[\[ ])(?:num_|n_)?(?:\w+_)?n?(?:consts|carry|length|reverse|unroll)=\w+ ?", ""),
    (r"(?<=[\[ ])ft_(?:in|out)=\(.*?\) (?=ft_out|jaxpr)", ""),
    (r"\b(body|cond)_jaxpr=", r"\1="),
    # Parameters that only one of the two has or prints.
    (r"(?<=[\[ ])(?:\w+=None|preferred_element_type=\w+|pin=False|kind=RefKind.ARRAY) ?", ""),
    (r"(?<=dimensions=)(\(\d*,?(?: \d+)*\)) shape=\([\d, ]*\)", r"\1"),
    (r"broadcast_in_dim\[broadcast_dimensions=\(\)\]", "broadcast_in_dim"),
    (r"\(\(\(1,\), \(0,\)\), \(\(\), \(\)\)\)", "(([1], [0]), ([], []))"),
    # Writes to references drop positions out of bounds, in an explicit mode.
    (r";drop\]", "]"),
    # One addition serves values and cotangents.
    (r"\badd_any\b", "add"),
    (r"; ", " "),
    (r"(?<!:)(?<=\w)\[ ?\](?= \w)", ""),
    (r"\[ ", "["),
    (r" \]", "]"),
)
"""Known differences of printed programs, as (pattern, replacement) applied to both texts."""


def program(jaxpr: object) -> Program:
    """Return the text of a program without known differences, its variables renumbered."""
    # The text of a closed program has its constants before that of JAX.
    text = re.sub(r"\s+", " ", str(getattr(jaxpr, "jaxpr", jaxpr)))
    for pattern, replacement in EXPLAINED:
        text = re.sub(pattern, replacement, text)
    return Program(_renumbered(text))


_TOKEN = re.compile(r"[A-Za-z_]\w*|.", re.DOTALL)


def _renumbered(text: str) -> str:
    """Rename variables in order of binding, since JAX numbers subjaxprs together."""
    scopes: list[dict[str, str]] = [{}]
    made = 0
    out = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "{":
            scopes.append({})
        elif token == "}":
            scopes.pop()
        elif token.isidentifier() and re.match(r":[A-Za-z]", text[match.end() :]):
            scopes[-1][token] = f"v{made}"
            made += 1
        out.append(scopes[-1].get(token, token) if text[match.start() - 1] != ":" else token)
    return "".join(out)


def raised(call: Callable[[], object]) -> Raised:
    """Return the built-in class of the error that a call raises. Fails if it raises none."""
    try:
        found = call()
    except BUILTIN as error:
        return Raised(next(b.__name__ for b in BUILTIN if isinstance(error, b)))
    raise AssertionError(f"no error, but {found!r}")


def described(x: Any) -> object:
    """Return a tree of results with leaves as data that is comparable between the libraries."""
    if (
        isinstance(x, Leaf | Program | Raised)
        or x is None
        or isinstance(x, str | bool | int | float)
    ):
        return x
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        fields = {k: described(v) for k, v in zip(x._fields, x, strict=True)}
        return (type(x).__name__, fields)
    if isinstance(x, list | tuple):
        return [type(x).__name__, *map(described, x)]
    if isinstance(x, Mapping):
        return {k: described(v) for k, v in sorted(x.items())}
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return _leaf(x)
    return type(x).__name__


def _leaf(x: Any) -> Leaf:
    dtype = str(x.dtype)
    if "float0" in dtype or dtype == "V":
        return Leaf("array", "float0", False, np.zeros(x.shape, bool))
    if "Ref" in type(x).__name__:
        return Leaf("ref", dtype, False, np.array(x[...]))
    if "key<" in dtype:
        return Leaf("key", dtype, False, np.zeros(x.shape, bool))
    value = np.asarray(x)
    return Leaf("array", dtype, bool(getattr(x, "weak_type", False)), value)


def assert_same(ours: object, theirs: object, path: str = "result") -> None:
    """Check that trees, kinds, dtypes, weakness and shapes are equal, and values equal or close."""
    if isinstance(ours, Leaf) and isinstance(theirs, Leaf):
        _assert_same_leaf(ours, theirs, path)
    elif isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        if isinstance(ours, Program | Raised) or isinstance(theirs, Program | Raised):
            assert ours == theirs, path
            return
        assert len(ours) == len(theirs), f"{path}: {ours} is not {theirs}"
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{path}[{i}]")
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        for k in ours:
            assert_same(ours[k], theirs[k], f"{path}[{k!r}]")
    else:
        assert ours == theirs, path


def _assert_same_leaf(ours: Leaf, theirs: Leaf, path: str) -> None:
    found = (ours.kind, ours.dtype, ours.value.shape)
    expected = (theirs.kind, theirs.dtype, theirs.value.shape)
    assert found == expected, f"{path}: {found}, JAX has {expected}"
    if ours.dtype != "bool":
        # A boolean of JAX can be weak, without effect.
        weak = ("weak" if ours.weak else "strong", "weak" if theirs.weak else "strong")
        assert weak[0] == weak[1], f"{path}: {weak[0]}, JAX has {weak[1]} ({ours.dtype})"
    if ours.value.dtype.kind in "biu":
        np.testing.assert_array_equal(ours.value, theirs.value, err_msg=path)
        return
    wide = np.complex128 if ours.value.dtype.kind == "c" else np.float64
    tolerance = 1e-5 if ours.value.dtype.itemsize >= 4 else 2e-2
    np.testing.assert_allclose(
        ours.value.astype(wide),
        theirs.value.astype(wide),
        rtol=tolerance,
        atol=tolerance,
        err_msg=path,
    )


def of_jax(case: Case) -> object:
    """Return the results of JAX, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax

        return described(case(jax, jax.numpy))


def of_effax(case: Case) -> object:
    """Return the results of effax."""
    import effax

    return described(case(effax, effax.numpy))


def check(case: Case) -> None:
    """Run a case in both libraries and compare the results."""
    assert_same(of_effax(case), of_jax(case))


def skip_before(name: str, since: Mapping[str, str]) -> None:
    """Skip a case that needs a newer JAX than the installed one."""
    import jax

    if name in since and jax.__version_info__ < tuple(map(int, since[name].split("."))):
        pytest.skip(f"JAX {jax.__version__} cannot do this; {since[name]} can")


def cases_of(module: ModuleType) -> list[Case]:
    """Return the public functions that a module defines, in order."""
    return [
        f
        for name, f in vars(module).items()
        if callable(f) and not name.startswith("_") and f.__module__ == module.__name__
    ]
