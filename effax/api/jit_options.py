"""The options of ``jit`` beyond static arguments: donation, placement, options of the compiler."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias, final

from effax import tree
from effax.api.devices import devices
from effax.api.dispatch import Runner
from effax.api.static import StaticArgs
from effax.arrays.device_array import DeviceArray
from effax.arrays.device_plan import DevicePlan, device_plan
from effax.arrays.placed import check_device, is_first_device, placement
from effax.arrays.sharding import PartitionSpec, Sharding
from effax.arrays.tracing import FlatFunction
from effax.ir.errors import BadArgument
from effax.ir.types import ArrayType
from effax.lowering.layout import DeviceLayout
from effax.lowering.program import CompiledProgram
from effax.lowering.xla import EFFORTS
from effax.passes.pipeline import AnyPass
from effax.tree import PyTree

CompilerOptions: TypeAlias = Mapping[str, bool | int | float | str]
"""Options of XLA by name, such as ``{"xla_cpu_enable_fast_math": True}``."""


class CompilerEffortLevel(Enum):
    """The time that XLA may spend, as a value of ``compiler_options`` of ``jit``.

    The options are ``optimization_level``, for speed, and ``memory_fitting_level``, for memory.
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Inline(Enum):
    """The treatment of a call of a jitted function within another one.

    ``JAX_EARLY`` inlines its equations while the caller is traced, as ``inline=True``. With the
    others the call is one equation, which XLA inlines where it sees fit.
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


@final
class Unspecified:
    """The value of an option that is not passed, where None has a meaning."""

    def __repr__(self) -> str:
        return "unspecified"


UNSPECIFIED = Unspecified()


class JitOptions(NamedTuple):
    """The options of one jitted function.

    Attributes:
        inline: whether calls within another trace are inlined.
        passes: the pass that is applied to the program.
        donate: the arguments whose memory results may reuse.
        in_shardings: the shardings of the arguments, a tree prefix of the positional ones.
        out_shardings: those of the results, a tree prefix.
        device: the device that runs it, or None.
        backend: the platform, or None.
        compiler_options: options of XLA.
    """

    inline: bool = False
    passes: AnyPass | None = None
    donate: StaticArgs = StaticArgs((), ())
    in_shardings: PyTree = UNSPECIFIED
    out_shardings: PyTree = UNSPECIFIED
    device: object = None
    backend: str | None = None
    compiler_options: tuple[tuple[str, object], ...] = ()

    @property
    def are_plain(self) -> bool:
        """Return whether programs depend on the function and its arguments alone."""
        return self._replace(inline=False) == JitOptions()

    def plan(
        self,
        flat: FlatFunction,
        static: StaticArgs,
        args: Sequence[object],
        kwargs: _Kwargs,
        leaves: Sequence[object],
        name: str,
    ) -> CallPlan:
        """Return what the options mean for a call with these arguments, static ones included.

        Raises:
            BadArgument: arguments and options are on different devices, or the options do not fit
                the structure of the arguments or results.
            IllTyped: a sharding does not divide an argument or a result.
        """
        made = CallPlan() if self.are_plain else self._plan(flat, static, args, kwargs)
        operands = [*flat.consts, *leaves]
        devices = device_plan(flat.jaxpr, operands, made.ins, made.outs, f"jit({name})")
        return made if devices is None else made._replace(devices=devices)

    def shardings(
        self, flat: FlatFunction, static: StaticArgs, args: Sequence[object], kwargs: _Kwargs
    ) -> tuple[Sequence[Sharding | None], Sequence[Sharding | None]]:
        """Return the shardings of the leaves of arguments and of results; nothing without any."""
        if self.in_shardings is UNSPECIFIED and self.out_shardings is UNSPECIFIED:
            return (), ()
        made = self._plan(flat, static, args, kwargs)
        return made.ins, made.outs

    def _plan(
        self, flat: FlatFunction, static: StaticArgs, args: Sequence[object], kwargs: _Kwargs
    ) -> CallPlan:
        if self.backend is not None:
            devices(self.backend)
        n_consts = len(flat.consts)
        types = flat.jaxpr.in_types[n_consts:]
        outs = [t for t in flat.jaxpr.out_types if isinstance(t, ArrayType)]
        dynamic = [x for i, x in enumerate(args) if i not in static.nums]
        positional = len(tree.leaves(dynamic))
        ins = self._places(self.in_shardings, tuple(dynamic), "in_shardings", types[:positional])
        result = tree.unflatten(flat.out_tree, range(len(outs)))
        return CallPlan(
            donated=self._donated(static, args, kwargs),
            compiler_options=self.compiler_options,
            ins=[*ins, *[None] * (len(types) - positional)],
            outs=self._places(self._of_results(), result, "out_shardings", outs),
        )

    def _of_results(self) -> PyTree:
        """Return the shardings of results: those on the device, unless it is the first."""
        if self.device is None:
            return self.out_shardings
        check_device(self.device, "jit: device")
        if is_first_device(self.device):
            return self.out_shardings
        if self.out_shardings is not UNSPECIFIED:
            raise BadArgument("jit places its results once", "`device` or `out_shardings`", "both")
        return placement(self.device, "jit: device")

    def _donated(
        self, static: StaticArgs, args: Sequence[object], kwargs: _Kwargs
    ) -> tuple[int, ...]:
        """Return the positions of the leaves whose memory results may reuse."""
        nums, names = self.donate
        flags = [tree.map(lambda _, d=i in nums: d, x) for i, x in enumerate(args)]
        by_name = {k: tree.map(lambda _, d=k in names: d, x) for k, x in kwargs.items()}
        dynamic = [f for i, f in enumerate(flags) if i not in static.nums]
        named = {k: f for k, f in by_name.items() if k not in static.names}
        return tuple([i for i, f in enumerate(tree.leaves((dynamic, named))) if f])

    def _places(
        self, shardings: PyTree, of: PyTree, what: str, types: Sequence[object]
    ) -> list[Sharding | None]:
        """Return the sharding of each leaf. Raises as :meth:`plan`."""
        if shardings is UNSPECIFIED or shardings is None:
            return [None] * len(types)
        if isinstance(shardings, Sharding | PartitionSpec):
            entries: list[object] = [shardings] * len(types)
        else:
            whole = tuple(shardings) if isinstance(of, tuple) else shardings
            entries = list(tree.broadcast_prefix(whole, of))
        places: list[Sharding | None] = []
        for entry, type_ in zip(entries, types, strict=True):
            place = None if entry is UNSPECIFIED else placement(entry, f"jit: {what}")
            if place is not None and isinstance(type_, ArrayType):
                place.shard_shape(type_.shape)
            places.append(place)
        return places


_Kwargs: TypeAlias = Mapping[str, object]


class CallPlan(NamedTuple):
    """The options of a call, by the leaves of its arguments and results.

    Attributes:
        donated: the positions of the leaves whose memory results may reuse.
        compiler_options: options of XLA.
        ins: the sharding of each leaf of the arguments, or None; empty for all None.
        outs: that of each leaf of the results.
        devices: the devices, where it is not the first one that runs the call.
    """

    donated: tuple[int, ...] = ()
    compiler_options: tuple[tuple[str, object], ...] = ()
    ins: Sequence[Sharding | None] = ()
    outs: Sequence[Sharding | None] = ()
    devices: DevicePlan | None = None

    @property
    def layout(self) -> DeviceLayout | None:
        """Return the devices and placements of the program."""
        return None if self.devices is None else self.devices.layout

    def runner(self, run: Runner, program: CompiledProgram, n_consts: int) -> Runner:
        """Return the function that runs a call, donates its arguments and places its results."""
        used = [i - n_consts for i in program.donated]
        made = _donating(run, used) if used else run
        placed = self.devices is None and any(x is not None for x in self.outs)
        return _placing(made, self.outs) if placed else made

    def warn_of_unused(self, program: CompiledProgram, flat: FlatFunction) -> None:
        """Warn of donated arguments whose memory no result can reuse."""
        n = len(flat.consts)
        unused = [i for i in self.donated if i + n not in program.donated]
        types = [flat.jaxpr.in_types[i + n] for i in unused]
        # References are updated in place anyway.
        shown = [str(t) for t in types if isinstance(t, ArrayType)]
        if shown:
            warnings.warn(
                f"Some donated buffers were not usable: {', '.join(shown)}: no result has their "
                "shape and dtype",
                stacklevel=5,
            )


def _donating(run: Runner, donated: Sequence[int]) -> Runner:
    def run_and_forget(leaves: Sequence[object]) -> object:
        result = run(leaves)
        for i in donated:
            x = leaves[i]
            if isinstance(x, DeviceArray):
                x.delete()
        return result

    return run_and_forget


def _placing(run: Runner, places: Sequence[Sharding | None]) -> Runner:
    def run_and_place(leaves: Sequence[object]) -> object:
        found, structure = tree.flatten(run(leaves))
        placed = [x.placed(s) for x, s in zip(found, places, strict=True)]
        return tree.unflatten(structure, placed)

    return run_and_place


def checked_compiler_options(options: object) -> tuple[tuple[str, object], ...]:
    """Return the options of XLA as pairs. Raises BadArgument."""
    if options is None:
        return ()
    if not isinstance(options, Mapping) or not all(isinstance(k, str) for k in options):
        raise BadArgument(
            "compiler_options are options of XLA by name",
            expected="a dict, such as {'xla_cpu_enable_fast_math': True}",
            found=f"{options!r:.80}",
        )
    return tuple([(k, _effort(k, v) if k in EFFORTS else v) for k, v in options.items()])


def _effort(name: str, level: object) -> int:
    """Return the number of a level of effort, or of its name. Raises BadArgument."""
    for known in CompilerEffortLevel:
        if level in (known, known.name, known.value):
            return known.value
    raise BadArgument(
        f"compiler_options: {name} does not have this value",
        expected=", ".join(repr(known.name) for known in CompilerEffortLevel),
        found=f"{level!r:.60}",
    )
