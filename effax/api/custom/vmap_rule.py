"""Custom rules for batching: traced once the batch size is known, and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effax import tree
from effax.api.custom.results import check_pair
from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.promotion import converted
from effax.arrays.rules.call_rules import CallRule, CallRules
from effax.arrays.tracing import check_same_tree, result_names, shown_tree
from effax.ir.errors import IllTyped
from effax.ir.prims import BatchedProgram, VmapRule
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass
from effax.transforms.vmap.common import batched_type
from effax.tree import PyTreeDef


@dataclass(frozen=True, eq=False, repr=False)
class CallVmap(CallRule, VmapRule):
    """The user's batching rule: ``(axis_size, in_batched, *args) -> (out, out_batched)``."""

    call: CallRules
    fun: Callable[..., object]
    label: str

    def __call__(self, size: int, batched: tuple[bool, ...], /) -> BatchedProgram:
        return self.call.once((self, size, batched), lambda: self._traced(size, batched))

    def _traced(self, size: int, batched: tuple[bool, ...]) -> BatchedProgram:
        call, site = self.call, self.call.site
        own = batched[call.n_consts :]
        what = f"the batching rule of {site.label}"
        types = [
            batched_type(t, size) if has else t for t, has in zip(site.types, own, strict=True)
        ]
        in_batched = list(tree.unflatten(site.args_tree, own))
        flags: list[bool] = []

        def run(*leaves: object) -> list[Array]:
            args = tree.unflatten(site.args_tree, leaves)
            result = self.fun(size, in_batched, *site.fixed, *args)
            out, axes = check_pair(result, what, "(result, out_batched)")
            outs, out_tree = tree.flatten(out)
            check_same_tree(out_tree, call.out_tree, f"the result of {what}")
            flags[:] = _flags(axes, out_tree, what)
            names = result_names(f"the result of {what}", out_tree)
            entries = zip(outs, call.out_types, flags, names, strict=True)
            return [_fitted(x, t, has, size, name) for x, t, has, name in entries]

        jaxpr = call.traced(run, types, site.names, what, call.outers)
        return BatchedProgram(jaxpr, tuple(flags))


def _flags(given: object, out_tree: PyTreeDef, what: str) -> Sequence[bool]:
    """Return which leaves of the result are batched, from a tree of booleans or one for all."""
    leaves, treedef = tree.flatten(given)
    if treedef == tree.structure(0) and out_tree.num_leaves != 1:
        treedef, leaves = out_tree, leaves * out_tree.num_leaves
    if treedef != out_tree:
        raise IllTyped(
            f"out_batched of {what} has another structure than its result",
            expected=shown_tree(out_tree),
            found=shown_tree(treedef),
        )
    for leaf in leaves:
        if not isinstance(leaf, bool):
            raise IllTyped(
                f"out_batched of {what} has an entry that is not a boolean",
                expected="True or False for each leaf of the result",
                found=f"{type(leaf).__name__}: {leaf!r:.60}",
            )
    return leaves


def _fitted(value: object, type_: Type, batched: bool, size: int, name: str) -> Array:
    """Cast a result to the type of the function's, with an axis in front if batched."""
    x = as_value(value, name)
    ct_spec = batched_type(type_, size) if batched else type_
    if x.shape != ct_spec.shape or (x.dtype != ct_spec.dtype and not x.weak_type):
        raise IllTyped(
            f"{name} has the wrong type",
            expected=f"{ct_spec}, {'with' if batched else 'without'} a batch axis of length {size}",
            found=str(x.type),
            remedy="set its entry in out_batched to whether it has the axis",
        )
    return converted(x, ct_spec.dtype, ct_spec.weak)
