"""Compiled calls as bytes: machine code, and the values that the function closes over.

The portable form, which any device compiles, is that of :mod:`effax.export`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

import numpy as np

from effax import tree
from effax.api.stages import Compiled
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.tracing import check_same_tree
from effax.ir.errors import BadArgument
from effax.ir.types import ArrayType, RefType
from effax.lazy.dataclasses import dataclass
from effax.lowering import executables
from effax.lowering.artifact import Artifact, contents_of, pack, types_of, unpack
from effax.tree import PyTree, PyTreeDef

R = TypeVar("R")

KIND = "compiled call"


@dataclass(frozen=True, eq=False)
class LoadedCall:
    """A compiled call that was read from bytes.

    Attributes:
        module: the compiled program, on captured values and leaves of arguments.
        consts: the captured values.
        out_types: the types of the leaves of the result.
        in_tree: the structure of ``(args, kwargs)``.
        out_tree: the structure of the result.
    """

    module: executables.CompiledModule
    consts: tuple[np.ndarray, ...]
    out_types: tuple[ArrayType, ...]
    in_tree: PyTreeDef
    out_tree: PyTreeDef

    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        leaves, treedef = tree.flatten((args, kwargs))
        check_same_tree(treedef, self.in_tree, "the arguments of a compiled call")
        outs = self.module(*self.consts, *[as_value(x).numpy() for x in leaves])
        made = [DeviceArray(x, t) for x, t in zip(outs, self.out_types, strict=True)]
        return tree.unflatten(self.out_tree, made)

    def as_text(self) -> str:
        """Return the optimised program as XLA's HLO text."""
        return self.module.as_text()


def serialize(compiled: Compiled[R]) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """Return a compiled call as bytes, and the structures of its arguments and result.

    Args:
        compiled: ``jit(f).lower(*args).compile()``, on one device.

    Raises:
        BadArgument: it takes references or closes over them, or is on several devices.
        LoweringError: it calls Python functions.

    >>> from effax.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = effax.jit(lambda x: {"y": x + 1.0}).lower(1.0).compile()
    >>> deserialize_and_load(*serialize(compiled))(2.0)
    {'y': Array(3., dtype=float32, weak_type=True)}
    """
    flat = compiled.flat
    if any(isinstance(t, RefType) for t in flat.jaxpr.in_types):
        raise BadArgument(
            "serialize with a closed-over reference, or one as an argument",
            expected="a function of arrays",
            found=str(flat.jaxpr.effects),
            remedy="pass the contents, and return the new ones",
        )
    if compiled.on_devices:
        raise BadArgument("serialize of a call on several devices", expected="one device")
    consts = [as_value(c).numpy() for c in flat.consts]
    module = executables.compile(flat.jaxpr)
    header = {
        "consts": list(map(str, flat.jaxpr.in_types[: len(consts)])),
        "out_types": list(map(str, flat.jaxpr.out_types)),
    }
    parts = {f"const {i}": c.tobytes() for i, c in enumerate(consts)}
    data = pack(KIND, Artifact(header, {"module": module.serialize(), **parts}))
    return data, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: object = None,
    execution_devices: Sequence[object] | None = None,
) -> LoadedCall:
    """Return the compiled call that :func:`serialize` wrote; ``backend`` is the only one.

    It is compiled again on another kind of processor, or by another version of jaxlib. Machine code
    runs unchecked: load trusted bytes only.

    Raises:
        BadArgument: ``serialized`` is not bytes, or ``execution_devices`` are several.
        LoweringError: ``serialized`` is not such a call, or cannot be compiled here.
    """
    if execution_devices is not None and len(execution_devices) != 1:
        raise BadArgument(
            "a serialized call runs on one device", "one device", str(execution_devices)
        )
    header, parts = unpack(KIND, serialized)
    types = cast("tuple[ArrayType, ...]", types_of(header, "consts"))
    consts = [contents_of(parts[f"const {i}"], t) for i, t in enumerate(types)]
    outs = cast("tuple[ArrayType, ...]", types_of(header, "out_types"))
    module = executables.load(parts["module"])
    return LoadedCall(module, tuple(consts), outs, in_tree, out_tree)
