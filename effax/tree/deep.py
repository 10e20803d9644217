"""Trees of more levels than optree's recursion takes: cut into pieces that it takes.

Structures have no such bound: optree walks them without recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import optree

LEVELS: Final = optree.MAX_RECURSION_DEPTH // 2
"""The most levels of a piece."""

IsLeaf = Callable[[object], bool] | None


class DeepTree(NamedTuple):
    """The leaves of a tree, its structure, and the path to each leaf (none where not wanted)."""

    leaves: list[object]
    spec: optree.PyTreeSpec
    paths: list[optree.PyTreeAccessor]


def flatten_deep(
    tree: object, is_leaf: IsLeaf, none_is_leaf: bool, namespace: str, with_paths: bool = False
) -> DeepTree:
    """Flatten a tree of any number of levels.

    Raises RecursionError where the classes of its nodes return new children each time they are
    flattened, so that the pieces are not found again.
    """
    options = {"none_is_leaf": none_is_leaf, "namespace": namespace}
    cuts, _alive = _cuts(tree, is_leaf, options)
    pieces: dict[int, DeepTree] = {}
    done: dict[int, DeepTree] = {}
    waiting = [tree]
    while waiting:
        root = waiting[-1]
        if id(root) not in pieces:
            pieces[id(root)] = _piece(root, cuts, is_leaf, options, with_paths)
        piece = pieces[id(root)]
        missing = [x for x in piece.leaves if id(x) in cuts and id(x) not in done]
        if missing:
            waiting += missing
        else:
            done[id(root)] = _joined(piece, done, cuts)
            waiting.pop()
    return done[id(tree)]


def _cuts(tree: object, is_leaf: IsLeaf, options: dict[str, Any]) -> tuple[set[int], list[object]]:
    """Return the identities of the roots of inner pieces, and all nodes.

    The nodes must live as long as the identities are used.
    """
    cuts, nodes = set[int](), list[object]()
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if node is None or optree.tree_is_leaf(cast("Any", node), is_leaf, **options):
            continue
        nodes.append(node)
        if depth and depth % LEVELS == 0:
            cuts.add(id(node))
        children = optree.tree_flatten_one_level(cast("Any", node), is_leaf, **options)[0]
        waiting += [(child, depth + 1) for child in children]
    return cuts, nodes


def _piece(
    root: object, cuts: set[int], is_leaf: IsLeaf, options: dict[str, Any], with_paths: bool
) -> DeepTree:
    """Flatten the tree at ``root`` down to the next cuts, which are among the leaves."""

    def ends(x: object) -> bool:
        return (x is not root and id(x) in cuts) or (is_leaf is not None and is_leaf(x))

    tree = cast("Any", root)
    leaves, spec = optree.tree_flatten(tree, ends, **options)
    return DeepTree(
        leaves, spec, optree.tree_accessors(tree, ends, **options) if with_paths else []
    )


def _joined(piece: DeepTree, done: dict[int, DeepTree], cuts: set[int]) -> DeepTree:
    """Return the piece with the inner pieces at its cuts."""
    inner = [done[id(x)] if id(x) in cuts else None for x in piece.leaves]
    leaves: list[object] = []
    paths: list[optree.PyTreeAccessor] = []
    for leaf, found in zip(piece.leaves, inner, strict=True):
        leaves += [leaf] if found is None else found.leaves
    for path, found in zip(piece.paths, inner, strict=False):
        paths += [path] if found is None else [path + more for more in found.paths]
    rest = iter(inner)

    def spec_of(leaf: optree.PyTreeSpec) -> optree.PyTreeSpec:
        found = next(rest)
        return leaf if found is None else found.spec

    return DeepTree(leaves, optree.treespec_transform(piece.spec, None, spec_of), paths)
