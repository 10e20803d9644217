"""Serialize functions: ``export(f)(x).serialize()``, then ``deserialize(data).call(x)``.

The format is StableHLO's portable bytecode, which later versions of XLA read, with the types and
structures of arguments and results, and the arrays that the function closes over. References
remain references: a call updates its reference arguments in place.

Beside the module is the program, which is what a traced call inlines: it is differentiated and
batched as any other. Where a size is symbolic, the program alone serves all sizes, and is compiled
for those of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Final, cast, final

import numpy as np

from effax import tree
from effax.api import export_trees
from effax.api.export_program import ExportedProgram, read_program, write_program
from effax.api.jit import JitFunction, jit
from effax.api.ref_calls import Execute, RefProgram, executor_with_refs
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref
from effax.arrays.tracing import check_same_tree, input_type, label_of
from effax.arrays.view_arguments import open_views
from effax.ir.edit.refine import Sized, determined, refined_type, solved
from effax.ir.errors import IllTyped, LoweringError, RefError
from effax.ir.symbolic import FREE, SymbolicScope, is_symbolic_dim
from effax.ir.syntax import Jaxpr
from effax.ir.trace import alias_error, current_trace, identity
from effax.ir.types import ArrayType, RefType, Type
from effax.lazy.dataclasses import dataclass
from effax.lowering import xla
from effax.lowering.artifact import (
    DAMAGES,
    Artifact,
    contents_of,
    damaged,
    numbers_of,
    pack,
    types_of,
    unpack,
)
from effax.lowering.numbers import Number, number_as_array
from effax.lowering.program import stablehlo_of
from effax.transforms.discharge import changed_refs
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
            contents of the references that change. It is empty where a size is symbolic.
        consts: the arrays that the function closes over.
        program: the program that traced calls inline, or None in files without one.
        scope: the constraints of symbolic sizes.
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
    program: ExportedProgram | None = field(default=None, repr=False)
    scope: SymbolicScope = FREE
    _kept: list[Execute] = field(default_factory=list, repr=False)

    def mlir_module(self) -> str:
        """Return the StableHLO module as text.

        Raises:
            LoweringError: a size is symbolic.
        """
        if self.is_symbolic:
            raise LoweringError(
                f"{self.fun_name} is exported for symbolic sizes, and compiled for those of a call",
                expected="fixed sizes",
                found=", ".join(map(str, self.in_avals)),
                remedy="`jit(exported.call).lower(...)` for arguments of these sizes",
            )
        return xla.from_portable(self.mlir_module_serialized)

    def serialize(self) -> bytes:
        """Return the function as bytes for :func:`deserialize`.

        Raises:
            LoweringError: a size is symbolic, and the program has Python functions in it whose
                derivatives a file cannot represent.
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
            "constraints": self.scope.constraints,
        }
        parts = {"module": self.mlir_module_serialized}
        program = self._portable
        if program is not None:
            entries, more = write_program(program)
            header |= entries
            parts |= more
        elif self.is_symbolic:
            raise _not_portable(self.fun_name)
        for i, const in enumerate(self.consts):
            parts[f"const{i}"] = np.asarray(const).tobytes()
        return pack(KIND, Artifact(header, parts))

    def call(self, *args: object, **kwargs: object) -> PyTree:
        """Call the function on arrays, and on references, which it updates in place.

        The module is compiled at the first call. In a traced function the program is inlined.

        Raises:
            IllTyped: the arguments have another structure or other types; or they are traced, and
                the file has no program.
            RefError: one reference is passed twice.
            LoweringError: the module cannot be compiled here, or the execution failed.
        """
        leaves, found = tree.flatten(open_views((args, kwargs)))
        check_same_tree(found, self.in_tree, f"the call of {self.fun_name}")
        if current_trace() is not None:
            return self._traced(leaves)
        if self.is_symbolic:
            return self._compiled(*leaves)
        leaves[:] = map(_as_exported_type, leaves, self.in_avals, self.names)
        for x, type_, name in zip(leaves, self.in_avals, self.names, strict=True):
            _check(x, type_, name)
        self._check_aliases(leaves)
        results = self._executor()([*self.consts, *leaves])
        n = len(self.out_avals)
        outs = [DeviceArray(None, t, r) for t, r in zip(self.out_avals, results[:n], strict=True)]
        return tree.unflatten(self.out_tree, outs)

    @property
    def is_symbolic(self) -> bool:
        """Return whether a size of an argument is symbolic."""
        return any(is_symbolic_dim(n) for t in self.in_avals for n in t.shape)

    @cached_property
    def _portable(self) -> ExportedProgram | None:
        """The program without Python functions, if there is one."""
        return None if self.program is None else self.program.portable()

    @cached_property
    def _compiled(self) -> JitFunction[..., PyTree]:
        """The function for symbolic sizes, compiled for those of each call."""

        def traced(*leaves: object) -> PyTree:
            return self._traced(leaves)

        traced.__name__ = self.fun_name
        return jit(traced)

    def _traced(self, leaves: Sequence[object]) -> PyTree:
        """Add a call to the current trace."""
        # A rule that is a Python function was asked for symbolic sizes: its results are refined.
        program = self._portable if self.is_symbolic else self.program
        if program is None and self.is_symbolic:
            raise _not_portable(self.fun_name)
        if program is None:
            raise IllTyped(
                f"{self.fun_name} is traced, and was exported without a program",
                expected="arrays and references",
                found="a traced call",
                remedy="export it again, without Python functions as rules beside references",
            )
        found = [input_type(x, name) for x, name in zip(leaves, self.names, strict=True)]
        sized = zip(self.in_avals, found, self.names, strict=True)
        values = solved([Sized(t.shape, f.shape, name) for t, f, name in sized])
        operands: list[Operand] = []
        for x, type_, name in zip(leaves, self.in_avals, self.names, strict=True):
            exact = refined_type(type_, values)
            given = _as_exported_type(x, exact, name)
            _check(given, exact, name)
            operands.append(given if isinstance(given, Array | Ref) else as_value(given, name))
        self._check_aliases(operands)
        results = program.refined(values).traced([*self.consts, *operands], self.fun_name)
        return tree.unflatten(self.out_tree, results)

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
        n = len(consts)
        names = tuple([flat.jaxpr.name_of(n + i) for i in range(len(flat.jaxpr.binders) - n)])
        in_types = flat.jaxpr.in_types[n:]
        scope = determined([Sized(t.shape, (), x) for t, x in zip(in_types, names, strict=True)])
        if scope is None:
            changed, module = _module_of(flat.jaxpr, label)
        else:
            changed, module = changed_refs(flat.jaxpr), b""
            _check_no_callbacks(label, len(flat.jaxpr.effects.side_effects))
        return Exported(
            label,
            in_tree,
            in_types,
            flat.out_tree,
            tuple([t for t in flat.jaxpr.out_types if isinstance(t, ArrayType)]),
            names,
            tuple([i - n for i in changed]),
            module,
            consts,
            ExportedProgram(flat.jaxpr),
            scope or FREE,
        )

    return exported


def _not_portable(name: str) -> LoweringError:
    return LoweringError(
        f"{name} has rules that are Python functions, beside references or symbolic sizes",
        expected="rules whose derivative is a program",
        remedy="export it for fixed sizes, or without these rules",
    )


def _module_of(jaxpr: Jaxpr, label: str) -> tuple[Sequence[int], bytes]:
    """Return the references that a program changes, and its portable module."""
    done, module = stablehlo_of(jaxpr, label)
    _check_no_callbacks(label, len(module.host_calls))
    return done.changed, xla.to_portable(module.text)


def _check_no_callbacks(label: str, n: int) -> None:
    if n:
        raise LoweringError(
            f"{label} calls Python functions, which cannot be exported",
            expected="a function without callbacks",
            found=f"{n} of them",
        )


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
    scope = SymbolicScope(tuple(map(str, _items(header.get("constraints", ())))))
    consts = [
        DeviceArray(contents_of(parts[f"const{i}"], t), t)
        for i, t in enumerate(_array_types(header, "consts"))
    ]
    return Exported(
        str(header["fun_name"]),
        export_trees.tree_from_json(header["in_tree"]),
        types_of(header, "in_avals", scope),
        export_trees.tree_from_json(header["out_tree"]),
        _array_types(header, "out_avals", scope),
        tuple(map(str, _items(header["names"]))),
        numbers_of(header, "changed"),
        parts["module"],
        tuple(consts),
        read_program(header, parts, scope),
        scope,
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
    found = input_type(x, name)
    same = found.shape == type_.shape and found.dtype == type_.dtype
    if not same or isinstance(found, RefType) != isinstance(type_, RefType):
        raise IllTyped(f"{name} of an exported function has the wrong type", str(type_), str(found))


def _items(node: object) -> Sequence[object]:
    if not isinstance(node, list | tuple):
        raise KeyError("a list")
    return node


def _array_types(
    header: Mapping[str, object], name: str, scope: SymbolicScope = FREE
) -> tuple[ArrayType, ...]:
    return tuple([t for t in types_of(header, name, scope) if isinstance(t, ArrayType)])
