"""Serialize functions: ``export(f)(x).serialize()``, then ``deserialize(data).call(x)``.

The format is StableHLO's portable bytecode, which later versions of XLA read, with the types and
structures of arguments and results, and the arrays that the function closes over. References
remain references: a call updates its reference arguments in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast, final

import numpy as np

from effax import tree
from effax.api import export_trees
from effax.api.jit import JitFunction, jit
from effax.api.ref_calls import Execute, RefProgram, executor_with_refs
from effax.arrays.array import Array
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref, TracedRef
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import check_same_tree, input_type, label_of
from effax.arrays.view_arguments import open_views
from effax.ir.errors import IllTyped, LoweringError, RefError
from effax.ir.trace import alias_error, identity
from effax.ir.types import ArrayType, RefType, Type
from effax.lowering import xla
from effax.lowering.artifact import (
    DAMAGES,
    Artifact,
    damaged,
    numbers_of,
    pack,
    types_of,
    unpack,
)
from effax.lowering.numbers import Number, number_as_array
from effax.lowering.program import stablehlo_of
from effax.tree import PyTree, PyTreeDef

KIND: Final = "exported function"


@final
@dataclass(frozen=True, eq=False)
class Exported:
    """An exported function, for arguments of certain types.

    Attributes:
        fun_name: its name.
        in_tree: the structure of ``(args, kwargs)``.
        in_avals: the types of its arguments, references among them.
        out_tree: the structure of the result.
        out_avals: the types of the result's arrays.
        names: the names of the arguments in messages.
        changed: the positions of the references that a call changes.
        mlir_module_serialized: the module, as portable bytecode. It takes ``consts``, then the
            arguments, references by their contents; it returns the result's arrays, then the new
            contents of the references that change.
        consts: the arrays that the function closes over.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[Type, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ArrayType, ...]
    names: tuple[str, ...]
    changed: tuple[int, ...]
    mlir_module_serialized: bytes = field(repr=False)
    consts: tuple[Array, ...]
    _kept: list[Execute] = field(default_factory=list, repr=False)

    def mlir_module(self) -> str:
        """Return the StableHLO module as text."""
        return xla.from_portable(self.mlir_module_serialized)

    def serialize(self) -> bytes:
        """Return the function as bytes for :func:`deserialize`.

        Raises:
            BadArgument: an argument or the result is a tree with nodes of a class that is not
                registered for files (:func:`effax.export.register_pytree_node_serialization`).
        """
        header = {
            "fun_name": self.fun_name,
            "in_tree": export_trees.tree_to_json(self.in_tree, "the arguments"),
            "out_tree": export_trees.tree_to_json(self.out_tree, "the result"),
            "in_avals": list(map(str, self.in_avals)),
            "out_avals": list(map(str, self.out_avals)),
            "names": self.names,
            "changed": self.changed,
            "consts": [str(c.type) for c in self.consts],
        }
        parts = {"module": self.mlir_module_serialized}
        for i, const in enumerate(self.consts):
            parts[f"const{i}"] = np.asarray(const).tobytes()
        return pack(KIND, Artifact(header, parts))

    def call(self, *args: object, **kwargs: object) -> PyTree:
        """Call the function on arrays, and on references, which it updates in place.

        The module is compiled at the first call.

        Raises:
            IllTyped: the arguments have another structure or other types.
            RefError: one reference is passed twice.
            LoweringError: the module cannot be compiled here, or the execution failed.
        """
        leaves, found = tree.flatten(open_views((args, kwargs)))
        check_same_tree(found, self.in_tree, f"the call of {self.fun_name}")
        leaves[:] = map(_as_exported_type, leaves, self.in_avals, self.names)
        for x, type_, name in zip(leaves, self.in_avals, self.names, strict=True):
            _check(x, type_, name)
        self._check_aliases(leaves)
        results = self._executor()([*self.consts, *leaves])
        n = len(self.out_avals)
        outs = [DeviceArray(None, t, r) for t, r in zip(self.out_avals, results[:n], strict=True)]
        return tree.unflatten(self.out_tree, outs)

    def _check_aliases(self, leaves: Sequence[object]) -> None:
        seen: dict[int, str] = {}
        for x, name in zip(leaves, self.names, strict=True):
            if isinstance(x, Ref) and (first := seen.setdefault(identity(x), name)) is not name:
                raise alias_error(f"{self.fun_name} gets one reference as {first} and as {name}", x)

    def _executor(self) -> Execute:
        if not self._kept:
            k = len(self.consts)
            inner = [t.inner for i in self.changed if isinstance(t := self.in_avals[i], RefType)]
            executable = xla.compile_module(
                self.mlir_module_serialized, k + len(self.in_avals), (*self.out_avals, *inner)
            )
            refs = tuple([k + i for i, t in enumerate(self.in_avals) if isinstance(t, RefType)])
            changed = tuple([k + i for i in self.changed])
            names = ("",) * k + self.names
            self._kept.append(
                executor_with_refs(RefProgram(executable, refs, changed, names.__getitem__))
            )
        return self._kept[0]


def export(fun: Callable[..., object]) -> Callable[..., Exported]:
    """Return a function that exports ``fun`` for arguments of given types; it computes nothing.

    Arguments may be arrays and references, or their types: ``ShapeDtypeStruct``, ``RefType``.

    Args:
        fun: a function, compiled with ``jit`` or not.

    Raises:
        BadArgument: ``fun`` is not callable.
        RefError: ``fun`` closes over a reference.
        LoweringError: ``fun`` calls Python functions, or the module cannot be written portably.
    """
    compiled: JitFunction[..., object] = fun if isinstance(fun, JitFunction) else jit(fun)
    label = label_of(fun)

    def exported(*args: object, **kwargs: object) -> Exported:
        lowered = compiled.lower(*args, **kwargs)
        flat, in_tree = lowered.flat, lowered.in_tree
        consts = _arrays_of(flat.consts)
        done, module = stablehlo_of(flat.jaxpr, label)
        if module.host_calls:
            raise LoweringError(
                f"{label} calls Python functions, which cannot be exported",
                expected="a function without callbacks",
                found=f"{len(module.host_calls)} of them",
            )
        n = len(consts)
        names = [flat.jaxpr.name_of(n + i) for i in range(len(flat.jaxpr.binders) - n)]
        return Exported(
            label,
            in_tree,
            flat.jaxpr.in_types[n:],
            flat.out_tree,
            tuple([t for t in flat.jaxpr.out_types if isinstance(t, ArrayType)]),
            tuple(names),
            tuple([i - n for i in done.changed]),
            xla.to_portable(module.text),
            consts,
        )

    return exported


def deserialize(data: bytes) -> Exported:
    """Restore an exported function, also from older versions of effax and jaxlib.

    Args:
        data: the result of :meth:`Exported.serialize`.

    Raises:
        LoweringError: ``data`` is malformed, or was written by a newer version.
    """
    header, parts = unpack(KIND, data)
    try:
        return _exported(header, parts)
    except DAMAGES as error:
        raise damaged(error) from error


def _exported(header: Mapping[str, object], parts: Mapping[str, bytes]) -> Exported:
    consts = [
        DeviceArray(_contents(parts[f"const{i}"], t), t)
        for i, t in enumerate(_array_types(header, "consts"))
    ]
    return Exported(
        str(header["fun_name"]),
        export_trees.tree_from_json(header["in_tree"]),
        types_of(header, "in_avals"),
        export_trees.tree_from_json(header["out_tree"]),
        _array_types(header, "out_avals"),
        tuple(map(str, _items(header["names"]))),
        numbers_of(header, "changed"),
        parts["module"],
        tuple(consts),
    )


def _arrays_of(consts: Sequence[object]) -> tuple[Array, ...]:
    for const in consts:
        if isinstance(const, Ref):
            raise RefError(
                "an exported function closes over a reference",
                expected="references among its arguments",
                found=str(const.type),
                remedy="pass the reference as an argument",
                rule="export",
            )
    return tuple([c for c in consts if isinstance(c, Array)])


def _as_exported_type(x: object, type_: Type, name: str) -> object:
    """Convert a Python number to an array of the exported type; return other values unchanged."""
    number = type(x) in (bool, int, float, complex) and isinstance(type_, ArrayType)
    return number_as_array(cast("Number", x), cast("ArrayType", type_), name) if number else x


def _check(x: object, type_: Type, name: str) -> None:
    """Raise IllTyped unless the argument has the exported type."""
    if isinstance(x, TracedArray | TracedRef):
        raise IllTyped(
            f"{name} is traced: an exported function cannot be traced",
            expected="arrays and references",
            found="a traced value",
            remedy="call the function that it was exported from",
        )
    found = input_type(x, name)
    same = found.shape == type_.shape and found.dtype == type_.dtype
    if not same or isinstance(found, RefType) != isinstance(type_, RefType):
        raise IllTyped(f"{name} of an exported function has the wrong type", str(type_), str(found))


def _items(node: object) -> Sequence[object]:
    if not isinstance(node, list | tuple):
        raise KeyError("a list")
    return node


def _array_types(header: Mapping[str, object], name: str) -> tuple[ArrayType, ...]:
    return tuple([t for t in types_of(header, name) if isinstance(t, ArrayType)])


def _contents(data: bytes, type_: ArrayType) -> np.ndarray:
    """Return the array of these bytes, in row-major order."""
    if not data:
        return np.zeros(type_.shape, type_.dtype)
    made: np.ndarray = np.frombuffer(data, type_.dtype).reshape(type_.shape)
    return made
