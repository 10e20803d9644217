"""Group names of leaves by their tree paths: ``state['m'].*`` represents a subtree's leaves.

Long lists of inputs, references and results are printed and drawn by these groups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

FEW: Final = 8
"""The number of names that are listed one by one; more are grouped into at most as many."""

# A key in brackets, quoted or not; an attribute; the name of the argument.
_PART: Final = re.compile(
    r"""\['(?:[^'\\]|\\.)*'\]|\["(?:[^"\\]|\\.)*"\]|\[[^\[\]]*\]|\.\w+|[^.\[]+|.""", re.DOTALL
)


class PathGroup(NamedTuple):
    """Names with a common prefix.

    Attributes:
        name: the only name, or the prefix and ``.*``.
        members: the positions of the names, in order.
    """

    name: str
    members: tuple[int, ...]

    def __str__(self) -> str:
        return self.name


def path_groups(names: Sequence[str], most: int = FEW) -> list[PathGroup]:
    """Return the names in groups: each alone if they are few, else by subtrees.

    Arguments are split into their subtrees level by level, those with the fewest subtrees first,
    as long as there are at most ``most`` groups.

    Args:
        names: tree paths, such as ``state['m']['w']``.
        most: the maximal number of groups, unless there are more arguments than that.
    """
    parts = [tuple(_PART.findall(name)) for name in names]
    groups = _split(parts, range(len(names)), 0)
    depth = 1
    while deeper := _level(parts, groups, depth, most):
        groups, depth = deeper, depth + 1
    return [_named(names, parts, members, shared) for members, shared in groups]


_Group = tuple[Sequence[int], int]
"""The positions of names, and the length of the prefix at which they were split."""


def _level(
    parts: Sequence[Sequence[str]], groups: Sequence[_Group], depth: int, most: int
) -> list[_Group]:
    """Return the groups with those of this depth split, where that is possible; empty if none."""
    inner = {
        k: _split(parts, members, depth)
        for k, (members, shared) in enumerate(groups)
        if shared == depth and any(len(parts[i]) > depth for i in members)
    }
    kept: dict[int, list[_Group]] = {}
    total = len(groups)
    order = sorted(inner, key=lambda k: len(inner[k]))
    for count, equal in groupby(order, key=lambda k: len(inner[k])):
        alike = list(equal)
        total += (count - 1) * len(alike)
        if total > most:
            break
        kept |= {k: inner[k] for k in alike}
    if not kept:
        return []
    return [part for k, group in enumerate(groups) for part in kept.get(k, [group])]


def _split(parts: Sequence[Sequence[str]], members: Sequence[int], depth: int) -> list[_Group]:
    """Return the members by the part of their name at this depth."""
    found: dict[str, list[int]] = {}
    for i in members:
        key = parts[i][depth] if depth < len(parts[i]) else ""
        found.setdefault(key, []).append(i)
    return [(own, depth + 1) for own in found.values()]


def _named(
    names: Sequence[str], parts: Sequence[Sequence[str]], members: Sequence[int], shared: int
) -> PathGroup:
    first, one = members[0], len(members) == 1
    return PathGroup(names[first] if one else f"{''.join(parts[first][:shared])}.*", tuple(members))


def counted_groups(
    names: Sequence[str], noun: str, whole: Sequence[str] = (), most: int = FEW
) -> list[str]:
    """Return the groups of ``names`` with their sizes: ``state['m'].* (24 refs)``.

    Args:
        names: tree paths.
        noun: the word for a member.
        whole: all names, of which ``names`` are some: a group that lacks members says
            ``(20 of 24 refs)``.
        most: as for :func:`path_groups`.
    """
    shown = []
    for group in path_groups(names, most):
        n = len(group.members)
        if n == 1:
            shown.append(group.name)
            continue
        prefix = group.name.removesuffix(".*")
        total = sum([_is_below(name, prefix) for name in whole])
        some = f"{n} of {total}" if total > n else str(n)
        shown.append(f"{group.name} ({some} {noun}s)")
    return shown


def _is_below(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name[len(prefix) :][:1] in ("", "[", ".")
