"""Primitives as JAX's interpreters of jaxprs read them: operations, and parameters by JAX's names.

A subjaxpr is a ``ClosedJaxpr`` without constants, except that of ``remat2`` and ``shard_map``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TYPE_CHECKING, Final, TypeVar, cast

from effax.api.interpret import as_operands, eval_jaxpr
from effax.arrays.binding import Operand, bind
from effax.ir.build import Builder
from effax.ir.errors import BadArgument
from effax.ir.operation import READING, HasOperation, Operation
from effax.ir.primitive import Primitive
from effax.ir.prims import CustomJvp, CustomVjp, Jit, Remat, Scan, ShardMap, While
from effax.ir.prims.custom import CustomVmap
from effax.ir.registry import own_primitives
from effax.ir.state import cached
from effax.ir.syntax import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from effax.tree import PyTree

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P", bound=Primitive)

SEVERAL: Final = frozenset(
    {
        "custom_linear_solve", "custom_root", "debug_callback", "eigh", "io_callback", "lu",
        "pure_callback", "qr", "sort", "svd", "top_k", "optimization_barrier",
        "composite", "cond", "custom_jvp_call", "custom_lin", "custom_vjp_call", "custom_vmap_call",
        "jit", "remat2", "scan", "shard_map", "while",
    }
)  # fmt: skip
"""The primitives whose results are a list, as in JAX."""

JAX_ONLY: Final[Mapping[str, Mapping[str, object]]] = {
    "jit": {"donated_invars": (), "inline": False, "keep_unused": False},
    "scan": {"linear": (), "_split_transpose": False},
    "custom_jvp_call": {"symbolic_zeros": False},
    "custom_vjp_call": {"symbolic_zeros": False},
}
"""Parameters of JAX that have one value here; ``bind`` accepts them and uses none."""

NOT_USED: Final = frozenset(
    {"accuracy", "axis_index_groups", "compiler_options_kvs", "ctx_mesh", "donated_invars",
     "in_layouts", "in_shardings", "is_stable", "out_layouts", "out_sharding", "out_shardings",
     "sharding", "subfuns"}
)  # fmt: skip
"""Parameters of JAX that state no other result, which ``bind`` accepts with any value."""


class BuiltIn(Operation):
    """A built-in primitive of any parameters."""

    __slots__ = ("cls", "multiple_results", "name")

    def __init__(self, cls: type[Primitive]) -> None:
        self.cls: type[Primitive] = cls
        self.name: str = cls.name
        self.multiple_results: bool = cls.name in SEVERAL

    def bind(self, *args: object, **params: object) -> PyTree:
        """Apply the primitive: evaluate it, or add it to the program that is traced.

        Args:
            *args: arrays, numbers or references, in the order of ``eqn.invars``.
            **params: the parameters by the names of ``eqn.params``; those that JAX has and effax
                does not may be passed too.

        Returns:
            An array; a list of arrays if the operation has ``multiple_results``.

        Raises:
            BadArgument: a parameter is missing, or unknown.
            IllTyped: the operands do not fit.
        """
        prim, operands = applied(self, as_operands(args), params)
        outs = bind(prim, *operands)
        return outs if self.multiple_results or len(outs) != 1 else outs[0]

    def get_bind_params(self, params: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of ``bind`` by name, for the parameters of an equation.

        Those of ``custom_jvp_call`` and ``custom_vjp_call`` have ``subfuns``, whose first item
        applies the function.
        """
        found = dict(params)
        if self.cls in (CustomJvp, CustomVjp):
            found["subfuns"] = (_Applied(cast(ClosedJaxpr, params["call_jaxpr"])),)
        return found


class _Applied:
    """The function of a call with custom rules, without its rules."""

    __slots__ = ("closed",)

    def __init__(self, closed: ClosedJaxpr) -> None:
        self.closed: ClosedJaxpr = closed

    def call_wrapped(self, *args: object) -> list[object]:
        """Apply the function."""
        return list(eval_jaxpr(self.closed, *args))


_operations: Final[dict[type[Primitive], Operation]] = {}


def operation_of(cls: type[Primitive]) -> Operation:
    """Return the operation of a class of primitives: one object in the process."""
    found = _operations.get(cls)
    return _operations.setdefault(cls, BuiltIn(cls)) if found is None else found


def built_in_operations() -> dict[str, Operation]:
    """Return the operations of the built-in primitives by name."""
    return {name: operation_of(cls) for name, cls in sorted(own_primitives().items())}


Built = tuple[Primitive, Sequence[Operand]]
Build = Callable[[type[Primitive], list[Operand], dict[str, object]], Built]


def _default(cls: type[Primitive], args: list[Operand], params: dict[str, object]) -> Built:
    """Return the primitive whose fields are the parameters; closed subjaxprs become operands."""
    consts: list[object] = []

    def opened(value: object) -> object:
        if isinstance(value, ClosedJaxpr):
            consts.extend(value.consts)
            return value.jaxpr
        if type(value) is tuple and any(isinstance(x, ClosedJaxpr) for x in value):
            return tuple([opened(x) for x in value])
        return value

    known = {f.name: f.default is MISSING for f in _fields(cls)}
    unknown = set(params) - set(known) - NOT_USED - set(JAX_ONLY.get(cls.name, ()))
    if unknown or any(needed and n not in params for n, needed in known.items()):
        raise BadArgument(
            f"{cls.name} does not take these parameters",
            expected=", ".join(known) or "none",
            found=", ".join(sorted(params)) or "none",
            remedy="`eqn.primitive.bind(*args, **eqn.params)` passes those of an equation",
        )
    made = {n: opened(params[n]) for n in known if n in params}
    prim = cast("Callable[..., Primitive]", cls)(**made)
    if consts:
        prim, args = _with_consts(prim, as_operands(consts), args)
    return prim, args


@cached(maxsize=None)
def _fields(cls: type[Primitive]) -> tuple[Field[object], ...]:
    given: object = cls
    return fields(cast("type[DataclassInstance]", given)) if is_dataclass(given) else ()


def _with_consts(
    prim: Primitive, consts: list[Operand], args: list[Operand]
) -> tuple[Primitive, list[Operand]]:
    if not prim.is_call:
        raise BadArgument(
            f"a program that is a parameter of {prim.name} has constants",
            expected="a program without constants",
            found=f"{len(consts)} constants",
            remedy="pass them as operands of the primitive",
        )
    return prim, [*consts, *args]


def applied(
    operation: Operation, ins: Sequence[Operand], params: Mapping[str, object]
) -> tuple[Primitive, Sequence[Operand]]:
    """Return the primitive of these parameters, and its operands.

    Raises:
        BadArgument: a parameter is missing, or unknown.
    """
    if not isinstance(operation, BuiltIn):
        raise BadArgument(
            "an equation of a primitive of this kind cannot be built",
            expected="a primitive of effax",
            found=operation.name,
        )
    build = _BUILD.get(operation.cls, _default)
    return build(operation.cls, list(ins), dict(params))


def _renamed(names: Mapping[str, str]) -> Build:
    def build(cls: type[Primitive], args: list[Operand], params: dict[str, object]) -> Built:
        return _default(cls, args, {names.get(n, n): v for n, v in params.items()})

    return build


def _while(cls: type[Primitive], args: list[Operand], params: dict[str, object]) -> Built:
    """Return a loop whose two regions share one list of constants, each reference once."""
    cond, body = cast(ClosedJaxpr, params["cond_jaxpr"]), cast(ClosedJaxpr, params["body_jaxpr"])
    n, m = cast(int, params["cond_nconsts"]), cast(int, params["body_nconsts"])
    of_cond = [*as_operands(cond.consts), *args[:n]]
    of_body = [*as_operands(body.consts), *args[n : n + m]]
    shared = {id(x): x for x in [*of_cond, *of_body]}
    place = {key: i for i, key in enumerate(shared)}
    carry = args[n + m :]

    def over_shared(closed: ClosedJaxpr, own: Sequence[Operand]) -> Jaxpr:
        b = Builder([*[x.type for x in shared.values()], *closed.jaxpr.in_types[len(own) :]])
        ins = [*[b.binders[place[id(x)]] for x in own], *b.binders[len(shared) :]]
        return b.finish(b.inline_jaxpr(closed.jaxpr, ins))

    loop = While(over_shared(cond, of_cond), over_shared(body, of_body), len(shared))
    return loop, [*shared.values(), *carry]


_CUSTOM: Final = {"call_jaxpr": "call", "name": "label", "num_consts": "n_consts"}

_NAMES: Final[Mapping[type[Primitive], Mapping[str, str]]] = {
    Jit: {"name": "label"},
    Scan: {"num_consts": "n_consts", "num_carry": "n_carry"},
    CustomJvp: {**_CUSTOM, "jvp_jaxpr_fun": "rule"},
    CustomVjp: {**_CUSTOM, "bwd": "rule", "jvp_jaxpr_fun": "forward"},
    CustomVmap: {**_CUSTOM, "rule": "vmap_rule"},
}
"""JAX's names of parameters, and those of effax."""

_BUILD: Final[dict[type[Primitive], Build]] = {
    **{cls: _renamed(names) for cls, names in _NAMES.items()},
    While: _while,
}

_OPEN: Final = (Remat, ShardMap)
"""Primitives whose subjaxpr is open in JAX too."""


def jax_parameters(prim: Primitive) -> dict[str, object]:
    """Return the parameters of a primitive by JAX's names."""
    if isinstance(prim, HasOperation):
        return prim.params()
    if isinstance(prim, While):
        return _while_params(prim)
    names = {own: name for name, own in _NAMES.get(type(prim), {}).items()}
    is_open = isinstance(prim, _OPEN)
    own = [f.name for f in _fields(type(prim))]
    found = {names.get(n, n): _shown(getattr(prim, n), is_open) for n in own}
    return {**JAX_ONLY.get(prim.name, {}), **found}


def _shown(value: object, is_open: bool) -> object:
    if isinstance(value, Jaxpr):
        return value if is_open else closed(value)
    if type(value) is tuple and any(isinstance(x, Jaxpr) for x in value):
        return tuple([_shown(x, is_open) for x in value])
    return value


def closed(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return a program as one without constants: all binders are inputs."""
    return ClosedJaxpr(jaxpr.replace(n_consts=0) if jaxpr.n_consts else jaxpr, ())


def _used_consts(jaxpr: Jaxpr, n: int) -> list[int]:
    """Return the positions of the first ``n`` binders that a program uses."""
    used = {a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var)}
    used |= {a.id for a in jaxpr.outs if isinstance(a, Var)}
    return [i for i, v in enumerate(jaxpr.binders[:n]) if v.id in used]


def _while_params(prim: While) -> dict[str, object]:
    found: dict[str, object] = {}
    for what, jaxpr in (("cond", prim.cond), ("body", prim.body)):
        used = _used_consts(jaxpr, prim.n_consts)
        binders = [*[jaxpr.binders[i] for i in used], *jaxpr.binders[prim.n_consts :]]
        own = jaxpr.replace(binders=binders, n_consts=0, names=())
        found |= {f"{what}_nconsts": len(used), f"{what}_jaxpr": closed(own)}
    return found


def jax_operands(eqn: Eqn) -> list[Atom]:
    """Return the operands of an equation in the order of its parameters.

    Those of a ``while`` are the constants of the condition, those of the body, and the carry.
    """
    prim = eqn.prim
    if not isinstance(prim, While):
        return list(eqn.ins)
    n = prim.n_consts
    of_cond, of_body = _used_consts(prim.cond, n), _used_consts(prim.body, n)
    return [*[eqn.ins[i] for i in of_cond], *[eqn.ins[i] for i in of_body], *eqn.ins[n:]]


def operation(prim: Primitive) -> Operation:
    """Return the primitive without its parameters."""
    return prim.operation() if isinstance(prim, HasOperation) else operation_of(type(prim))


READING.operation = operation
READING.params = jax_parameters
READING.invars = jax_operands
