"""Values that backward rules log, as trees of dicts, tuples and lists, and by their paths.

A path has a part for each container: ``/f`` for the entry of a dict, ``(0`` for an element of a
tuple, ``[0`` for one of a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from effax.api.custom.results import check_pair
from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.ir.errors import BadArgument, IllTyped
from effax.tree import PyTree


def logged_pair(result: object, what: str) -> tuple[object, dict[str, object]]:
    """Return the cotangents and the logs that a rule returns. Raises IllTyped."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise IllTyped(
            f"{what} logs, and so must produce a pair",
            expected="a pair (cotangents, logs)",
            found=f"{type(result).__name__}: {result!r:.60}",
        )
    cotangents, logs = check_pair(result, what, "(cotangents, logs)")
    if logs is not None and type(logs) is not dict:
        raise IllTyped(
            f"{what}: the logs, the second part of its result, must be None or a dict",
            expected="None, or a dict of trees of arrays by name",
            found=f"{type(logs).__name__}: {logs!r:.60}",
        )
    return cotangents, cast("dict[str, object]", logs or {})


def log_paths(tree: object, path: str = "") -> dict[str, Array]:
    """Return the leaves of logs by their paths. Raises BadArgument for other containers."""
    if isinstance(tree, dict):
        parts = [(f"/{_checked(key)}", x) for key, x in tree.items()]
    elif type(tree) in (tuple, list):
        sign = "(" if isinstance(tree, tuple) else "["
        parts = [(f"{sign}{i}", x) for i, x in enumerate(cast("tuple[object, ...]", tree))]
    else:
        return {path: as_value(tree, f"the logged value {path[1:]}")}
    return {k: leaf for part, x in parts for k, leaf in log_paths(x, path + part).items()}


def _checked(key: object) -> str:
    if isinstance(key, str) and not re.search(r"[/(\[]", key):
        return key
    raise BadArgument(
        "the keys of logs are strings",
        expected="a string without '/', '(' and '['",
        found=f"{type(key).__name__}: {key!r:.60}",
    )


def logs_of(values: Mapping[str, object]) -> dict[str, PyTree]:
    """Return the logs whose leaves have these paths."""
    nested: dict[str, PyTree] = {}
    for path, value in values.items():
        parts = re.findall(r"[/(\[][^/(\[]*", path)
        at = nested
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = value
    return cast("dict[str, PyTree]", _joined(nested))


def _joined(tree: PyTree) -> PyTree:
    if not isinstance(tree, dict):
        return tree
    children = [_joined(x) for x in tree.values()]
    sign = next(iter(tree), "/")[0]
    if sign == "/":
        return dict(zip([part[1:] for part in tree], children, strict=True))
    return tuple(children) if sign == "(" else children
