"""Calls that never enter Python: jaxlib's C++ dispatcher, from a tree of arguments to its outputs.

It flattens the arguments, compares their types with those it has seen, runs the executable and
builds the outputs, as jax's own `jit` does. For arguments in a plain list of buffers it saves
nothing: there :class:`Executable` is as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn, final

from effax.ir.errors import LoweringError
from effax.lowering.xla.backend import aval_of, backend
from effax.lowering.xla.executable import Executable

if TYPE_CHECKING:
    from jaxlib import _jax

Miss = Callable[..., tuple[object, Executable | None]]
"""Computes what a call returns; with it, the executable that computes it, if one does."""


@final
class Nodes:
    """The classes that the dispatcher looks through, beside None, tuples, lists and dicts."""

    __slots__ = ("registry",)

    def __init__(self) -> None:
        from jaxlib import _jax

        self.registry = _jax.pytree.PyTreeRegistry()

    def register(self, node: type, fields: Sequence[str]) -> None:
        """Look through instances of ``node``, at these attributes.

        Outputs are rebuilt as ``node(**attributes)``; ``node`` is met exactly, not its subclasses.
        """
        self.registry.register_dataclass_node(node, list(fields), [])

    def leaves(self, tree: object) -> list[object]:
        """The leaves of a tree, in the dispatcher's order: a dict's by sorted key."""
        return self.registry.flatten(tree)[0]


class _FastPath(NamedTuple):
    """What the dispatcher needs to run without asking; the names are those that it reads."""

    xla_executable: _jax.LoadedExecutable
    out_pytree_def: _jax.pytree.PyTreeDef
    in_shardings: Sequence[_jax.SingleDeviceSharding]
    out_shardings: Sequence[_jax.SingleDeviceSharding]
    out_avals: Sequence[object]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[None]
    const_args: Sequence[object]


def fast_call(name: str, miss: Miss, nodes: Nodes) -> Callable[..., object]:
    """A function that runs in C++ from the second call on with arguments of the same types.

    Args:
        name: what profiles show.
        miss: called with the same arguments when their types are new. It returns the outputs and
            the executable that computes them from the leaves of the arguments (positional ones
            first, then keywords by name) in order; the leaves of the outputs are the executable's
            results in order. None instead of an executable means: ask again each time, as for a
            call with effects of its own. Where a leaf is no buffer it asks each time as well.
        nodes: what the dispatcher looks through to find buffers.

    The outputs must depend on nothing else than the leaves' values and types and the shape of the
    trees: `miss` is not asked again. Buffers that the executable donates are gone after the call.

    Raises:
        LoweringError: the leaves do not match the executable, at the first call.
    """
    from jaxlib import _jax

    def dispatched(*args: object, **kwargs: object) -> tuple[object, _FastPath | None, bool]:
        inputs = nodes.leaves((args, kwargs))
        outputs, executable = miss(*args, **kwargs)
        if executable is None or not all(isinstance(leaf, _jax.ArrayImpl) for leaf in inputs):
            return outputs, None, False
        return outputs, _fast_path(executable, len(inputs), outputs, nodes), False

    def undispatched(*args: object, **kwargs: object) -> object:
        return miss(*args, **kwargs)[0]

    cache = backend().calls
    return _jax.pjit(name, undispatched, dispatched, [], [], name, nodes.registry, _refuse, cache)


def _fast_path(executable: Executable, n_args: int, outputs: object, nodes: Nodes) -> _FastPath:
    results, out_tree = nodes.registry.flatten(outputs)
    n_outs = len(executable.out_types)
    found = [getattr(result, "aval", None) for result in results]
    avals = [aval_of(type_) for type_ in executable.out_types]
    if n_args != executable.n_args or found != avals:
        raise LoweringError(
            "these arguments and outputs are not those of the executable",
            expected=f"{executable.n_args} buffers in, {avals} out",
            found=f"{n_args} buffers in, {found} out",
            remedy="return no executable from `miss` where the trees hold anything else",
        )
    sharding = backend().sharding
    return _FastPath(
        xla_executable=executable.loaded,
        out_pytree_def=out_tree,
        in_shardings=[sharding] * n_args,
        out_shardings=[sharding] * n_outs,
        out_avals=avals,
        out_committed=[False] * n_outs,
        kept_var_bitvec=[True] * n_args,
        in_device_local_layouts=[None] * n_args,
        const_args=[],
    )


def _refuse(leaf: object, *_: object) -> NoReturn:
    raise LoweringError(
        "an argument is no buffer",
        expected="buffers, or nodes that hold buffers",
        found=type(leaf).__name__,
    )
