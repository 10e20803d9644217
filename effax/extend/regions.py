"""The base of user-defined primitives that call, loop or select: all follows from their regions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, NoReturn, Self, cast

from effax import transforms as passes
from effax.api.interpret import eval_jaxpr
from effax.arrays.array import Array
from effax.arrays.binding import bind
from effax.extend import rules
from effax.extend.bases import FunctionPrimitive
from effax.extend.guard import located
from effax.extend.primitive import Handle, RefPrimitive, operands_of
from effax.ir.build import Builder, typing_of
from effax.ir.errors import BadRule
from effax.ir.eval.numpy import evaluate, prepare
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.memo import memoize
from effax.ir.primitive import Region, Typing, Value
from effax.ir.prims.common.subjaxpr_checks import fits
from effax.ir.recursion import with_fresh_stack
from effax.ir.regions.checks import (
    operand_types,
    restricted,
    typing_by_regions,
    with_more_operands,
)
from effax.ir.regions.program import program_by_regions
from effax.ir.source import defined_at
from effax.ir.state import cached
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, array_type, ref_type
from effax.transforms.framework.rules import Indivisible, Rules
from effax.transforms.framework.runner import unwrap
from effax.transforms.rules.common.by_definition import BY_DEFINITION

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class RegionPrimitive(FunctionPrimitive, RefPrimitive):
    """A primitive that runs the programs among its fields, as its regions declare.

    A subclass defines ``regions``; each program is one region, in the order of the fields. Typing,
    effects, evaluation, derivatives, batching, discharge and lowering follow: from regions of a
    common form, a call, a loop or a selection, as those of a call, a ``scan`` or ``while``, and a
    ``cond``; or from ``function``, where it is overridden. A subclass may override each rule::

        @dataclass(frozen=True, slots=True)
        class Repeat(extend.RegionPrimitive):
            body: Jaxpr
            times: int
            name: ClassVar[str] = "repeat"

            def regions(self) -> tuple[Region, ...]:
                return (extend.loop_region(self.body, self.times),)

    Operands may be references, which the programs read and write.
    """

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        # Rules of the user are not those of the regions, so passes must not look inside.
        if "has_own_rules" not in vars(cls) and _overridden(cls, ("jvp", "transpose", "batch")):
            cls.has_own_rules = True

    @abstractmethod
    def regions(self) -> tuple[Region, ...]:
        """Return how each program is run: one region for each, in the order of the fields."""

    def function(self, *args: Handle, **kwargs: Handle) -> Array | Sequence[Array]:
        """Apply the primitive to traced arrays and references, by the form of its regions.

        Override it for regions of no common form: it runs the programs with
        :func:`effax.extend.eval_jaxpr`, in loops and branches of ``effax.lax``.
        """
        types = tuple([x.type for x in args])
        return eval_jaxpr(program_by_regions(self, types), *args)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        """Return the programs among the fields, in order."""
        found: list[Jaxpr] = []
        for name in _names(type(self)):
            value: object = getattr(self, name)
            found += [x for x in _items(value) if isinstance(x, Jaxpr)]
        return tuple(found)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Self:
        """Return the primitive with the programs among its fields replaced, in order."""
        return self._changed(jaxprs, {})

    def _changed(self, jaxprs: Sequence[Jaxpr], counts: Mapping[str, int]) -> Self:
        rest = iter(jaxprs)
        changed: dict[str, object] = {n: k for n, k in counts.items() if n in _names(type(self))}
        for name in _names(type(self)):
            value: object = getattr(self, name)
            if any(isinstance(x, Jaxpr) for x in _items(value)):
                made = [next(rest) if isinstance(x, Jaxpr) else x for x in _items(value)]
                changed[name] = tuple(made) if isinstance(value, tuple) else made[0]
        made_prim: object = replace(cast("DataclassInstance", self), **changed)
        return cast(Self, made_prim)

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Self | None:
        """Return the primitive with ``n`` more operands, as :class:`Primitive` says.

        Fields ``n_consts`` and ``n_carry`` of loops are counted anew. Override it if regions
        depend on operands in another way; None if it cannot have more.
        """
        selector = self.selector()
        at = 0 if selector is None else selector + 1
        pairs = zip(self.regions(), jaxprs, strict=True)
        return self._with_regions([with_more_operands(r, j, n, at) for r, j in pairs])

    def restrict(
        self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]
    ) -> Self | None:
        """Return the primitive with fewer operands and results, as :class:`Primitive` says.

        Override it as :meth:`with_constants`.
        """
        pairs = zip(self.regions(), jaxprs, strict=True)
        return self._with_regions([restricted(r, j, ins, outs) for r, j in pairs])

    def _with_regions(self, wanted: Sequence[Region]) -> Self | None:
        """Return the primitive with these regions, or None if the fields cannot express them.

        An error of ``regions``, or of an overridden ``function``, on the changed fields means that
        they cannot.
        """
        loop = next((r for r in wanted if r.repeats and not r.is_predicate), None)
        counts: dict[str, int] = {}
        if loop is not None:
            n_xs, n_carry = len(loop.parts), len(loop.carries)
            counts = {"n_consts": len(loop.args) - n_xs - n_carry, "n_carry": n_carry}
        try:
            made = self._changed([r.jaxpr for r in wanted], counts)
            return made if made.regions() == tuple(wanted) and _is_defined(made) else None
        except Exception:  # noqa: BLE001  # methods of the user, on fields that they may not expect
            return None

    def typing(self, *ins: Type) -> Typing:
        """Return the typing that follows from the regions."""
        with located(self.regions):
            return typing_by_regions(self, ins, _overridden(type(self), ("function",)))

    def definition(self, *ins: Type) -> Jaxpr:
        """Return the program of ``function``, or that which the regions define."""
        if _overridden(type(self), ("function",)):
            return _program_of_function(self, ins)
        with located(self.regions):
            return program_by_regions(self, ins)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """Evaluate the definition."""
        return evaluate(self.definition(*self._types(ins)), ins)

    def prepare(self) -> Callable[..., Sequence[Value]]:
        """Return a function that evaluates the definition repeatedly."""
        kept: dict[tuple[Type, ...], Callable[..., Sequence[Value]]] = {}

        def run(*ins: Value) -> Sequence[Value]:
            types = self._types(ins)
            if types not in kept:
                kept[types] = prepare(self.definition(*types))
            return kept[types](*ins)

        return run

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        """Evaluate the definition on all devices."""
        return evaluate_spmd(self.definition(*self._types(ins[0])), devices, ins)

    def _types(self, ins: Sequence[Value]) -> tuple[Type, ...]:
        known = operand_types(self)
        types: list[Type] = []
        for i, x in enumerate(ins):
            type_ = array_type(x.shape, x.dtype)
            types.append(ref_type(type_) if isinstance(known.get(i), RefType) else type_)
        return tuple(types)

    def discharge(
        self, ins: Sequence[Array], is_ref: Sequence[bool]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Return the results and the new contents of the definition."""
        types = [ref_type(x.type) if has else x.type for x, has in zip(ins, is_ref, strict=True)]
        made = unwrap(passes.discharge(self.definition(*types)))
        outs = eval_jaxpr(made.jaxpr, *ins)
        new = dict(zip(made.changed, outs[made.n_outs :], strict=True))
        return outs[: made.n_outs], [new.get(i) for i in range(len(ins))]

    def rules(self) -> Rules[NoReturn]:
        """Return the rules of the definition, and the overridden methods, traced."""
        return _rules_of(type(self))

    def bind(self, *args: object) -> list[Array]:
        """Apply the primitive: evaluate it, or add it to the program that is traced.

        Raises:
            IllTyped: the operands do not fit the regions, or one is not an array.
            BadRule: the regions are not well formed.
        """
        prim, operands = operands_of(self, args)
        return cast("list[Array]", bind(prim, *operands))


def _items(value: object) -> tuple[object, ...]:
    """Return the items of a tuple; another value alone."""
    return cast("tuple[object, ...]", value) if type(value) is tuple else (value,)


@cached(maxsize=None)
def _names(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of a class."""
    return tuple([f.name for f in fields(cls)]) if is_dataclass(cls) else ()


def _overridden(cls: type[RegionPrimitive], names: Sequence[str]) -> bool:
    return any(getattr(cls, name) is not getattr(RegionPrimitive, name) for name in names)


def _is_defined(prim: RegionPrimitive) -> bool:
    """Return true. Raise an error if an overridden ``function`` does not take the operands."""
    types = operand_types(prim)
    if _overridden(type(prim), ("function",)) and len(types) == 1 + max(types, default=-1):
        prim.definition(*[types[i] for i in range(len(types))])
    return True


@cached(maxsize=None)
def _rules_of(cls: type[RegionPrimitive]) -> Rules[RegionPrimitive]:
    def own(name: str) -> bool:
        return _overridden(cls, (name,))

    return Rules(
        jvp=rules.jvp if own("jvp") else BY_DEFINITION.jvp,
        transpose=rules.transpose if own("transpose") else BY_DEFINITION.transpose,
        batch=rules.batch if own("batch") else BY_DEFINITION.batch,
        split=Indivisible() if cls.has_own_rules else BY_DEFINITION.split,
        discharge=rules.discharge if own("discharge") else BY_DEFINITION.discharge,
        unroll=BY_DEFINITION.unroll,
    )


@memoize(maxsize=1024)
def _program_of_function(prim: RegionPrimitive, types: tuple[Type, ...]) -> Jaxpr:
    """Trace ``function``. Raise BadRule unless its program is as the regions declare."""
    declared = typing_of(prim, types)
    label = f"the function of {prim.name}"
    jaxpr, missing = rules.traced(lambda *args: prim._results(args), types, label, prim.function)
    found = jaxpr.out_types
    if any(missing) or len(found) != len(declared.outs) or not all(map(fits, found, declared.outs)):
        raise BadRule(
            f"{label} returns other types than its regions declare",
            expected=", ".join(map(str, declared.outs)),
            found="None" if any(missing) else ", ".join(map(str, found)),
            source=defined_at(prim.function),
        )
    if not set(jaxpr.effects) <= set(declared.effects):
        raise BadRule(
            f"{label} has other effects than its regions declare",
            expected=str(declared.effects),
            found=str(jaxpr.effects),
            source=defined_at(prim.function),
        )
    b = Builder(types)
    outs = b.inline_jaxpr(jaxpr, b.binders)
    return b.finish([b.fitted(out, t) for out, t in zip(outs, declared.outs, strict=True)])
