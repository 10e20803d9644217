"""Discharge, lower and compile a program, and cache the executable.

Executables are cached by the *value* of the program: two functions with equal jaxprs compile once.
Lowering is pure; compiling and running are not, and return an ``IOResult``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import partial
from threading import Lock
from typing import Final, TypeAlias

from returns.io import IOFailure, IOResult, IOSuccess

from effax.ir.edit.without_rules import without_rules
from effax.ir.errors import EffaxError, LoweringError
from effax.ir.state import Cache, register_cache
from effax.ir.syntax import Jaxpr
from effax.lazy.dataclasses import dataclass
from effax.lowering import xla
from effax.lowering.call_depth import check_levels, shallow
from effax.lowering.layout import DeviceLayout
from effax.lowering.persistent import PersistentCache
from effax.lowering.rules.default import DEFAULT, HOST_LIBRARIES
from effax.lowering.stablehlo import Module, lower
from effax.lowering.tokens import ordering_rules, thread_token
from effax.lowering.writer import LoweringRules
from effax.transforms.discharge import Discharged, discharge
from effax.transforms.framework.runner import unwrap
from effax.transforms.optimize.dce import dce


@dataclass(frozen=True)
class CompiledProgram:
    """A program that runs on buffers.

    Attributes:
        jaxpr: the program before discharge.
        discharged: the effect-free program that was lowered, and which inputs are references.
        module: the StableHLO module.
        executable: takes one buffer for each input; returns the results, then the new buffers of
            the references that the program changes, in the memory of the old ones unless it calls
            Python functions.
        donated: the positions of the inputs whose memory results reuse; a caller that passes
            buffers of its own must not use them again.
    """

    jaxpr: Jaxpr
    discharged: Discharged
    module: Module
    executable: xla.Executable
    donated: tuple[int, ...] = ()


CompilerOptions: TypeAlias = tuple[tuple[str, object], ...]
"""Options of XLA, by name."""


class _Cache:
    """Compiled programs by value; the least recently used are evicted first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.programs: OrderedDict[Hashable, CompiledProgram] = OrderedDict()
        self.lock = Lock()

    def find(self, key: Hashable) -> CompiledProgram | None:
        with self.lock:
            found = self.programs.get(key)
            if found is not None:
                # The key in the dictionary is found by identity, without a comparison.
                self.programs.move_to_end(found.jaxpr if isinstance(key, Jaxpr) else key)
            return found

    def keep(self, key: Hashable, program: CompiledProgram) -> None:
        with self.lock:
            self.programs[key] = program
            while len(self.programs) > self.limit:
                self.programs.popitem(last=False)

    def clear(self) -> None:
        with self.lock:
            self.programs.clear()


_cache: Final = _Cache(256)
register_cache(
    Cache("effax.lowering.program._cache", 256, _cache.clear, lambda: len(_cache.programs))
)


def without_refs(jaxpr: Jaxpr) -> Discharged:
    """Return the program without dead code and references, its side effects ordered by a token.

    Lowering has no references: their contents are inputs and results here.

    Raises:
        TransformError: a pass does not apply.
    """
    jaxpr = without_rules(jaxpr)
    live = unwrap(dce(jaxpr, (True,) * len(jaxpr.outs))).jaxpr
    if not live.effects.side_effects:
        return unwrap(discharge(live))
    return unwrap(discharge(thread_token(live, DEFAULT), ordering_rules()))


def native_rules() -> LoweringRules:
    """Return the rules for modules that run in this process, which may call platform libraries.

    Raises:
        LoweringError: XLA does not start.
    """
    on_host = xla.devices()[0].platform == "cpu"
    return HOST_LIBRARIES if on_host and xla.has_lapack() else DEFAULT


def stablehlo_of(
    jaxpr: Jaxpr,
    name: str = "main",
    rules: LoweringRules = DEFAULT,
    donated: Sequence[int] = (),
    layout: DeviceLayout | None = None,
) -> tuple[Discharged, Module]:
    """Return the discharged program and its module.

    Each reference's input is aliased to its new contents: its buffer is donated, and updated in
    place. A program that calls Python functions has no aliases, so that references keep their
    contents if such a function raises.

    Args:
        jaxpr: the program.
        name: the name of the module.
        rules: the lowering rules; by default those of modules that run on any platform.
        donated: the positions of further inputs whose memory results reuse, where one of their
            shape and dtype is left.
        layout: the devices, and the placement of inputs and of results; that of a reference's new
            contents is its own.

    Raises:
        EffaxError: a pass or the lowering of a primitive does not apply.
    """
    done = without_refs(jaxpr)
    done = done._replace(jaxpr=shallow(done.jaxpr))
    aliases = [
        *donations(done, donated),
        *[(i, done.n_outs + k) for k, i in enumerate(done.changed)],
    ]
    if layout is not None:
        changed = [layout.ins[i] for i in done.changed]
        layout = layout._replace(outs=(*layout.outs[: done.n_outs], *changed))
    module = unwrap(lower(done.jaxpr, name=name, aliases=aliases, rules=rules, layout=layout))
    if module.host_calls and aliases:
        module = unwrap(lower(done.jaxpr, name=name, rules=rules, layout=layout))
    return done, module


def donations(done: Discharged, donated: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of a donated input and the result that reuses its memory, in order."""
    left = [i for i in donated if i not in done.refs]
    pairs: list[tuple[int, int]] = []
    for k, out in enumerate(done.jaxpr.outs[: done.n_outs]):
        kind = (out.type.shape, out.type.dtype)
        types = {i: done.jaxpr.binders[i].type for i in left}
        fits = [i for i, t in types.items() if (t.shape, t.dtype) == kind]
        if fits:
            left.remove(fits[0])
            pairs.append((fits[0], k))
    return pairs


def known_program(jaxpr: Jaxpr) -> CompiledProgram | None:
    """Return the cached executable of a program, without options; None if there is none."""
    return _cache.find(without_rules(jaxpr))


def compile_program(
    jaxpr: Jaxpr,
    donated: tuple[int, ...] = (),
    options: CompilerOptions = (),
    directory: PersistentCache | None = None,
    layout: DeviceLayout | None = None,
) -> IOResult[CompiledProgram, EffaxError]:
    """Compile a program, or return the cached executable.

    Args:
        jaxpr: the program.
        donated: the positions of inputs whose memory results may reuse.
        options: options of XLA.
        directory: the compiled programs of earlier processes.
        layout: the devices, and the placement of inputs and results, where it is not the first
            device that runs the program.
    """
    jaxpr = without_rules(jaxpr)
    key: Hashable = (jaxpr, donated, options, layout) if donated or options or layout else jaxpr
    found = _cache.find(key)
    if found is not None:
        return IOSuccess(found)
    try:
        done, module = stablehlo_of(jaxpr, rules=native_rules(), donated=donated, layout=layout)
        check_levels(done.jaxpr, xla.max_nesting())
        make = partial(
            xla.compile_module,
            module.text,
            len(done.jaxpr.binders),
            module.out_types,
            host_calls=module.host_calls,
            options=options,
            devices=layout.devices if layout else (),
            in_types=module.in_types,
        )
        on = layout.devices if layout else ()
        executable = directory.executable(module, options, make, on) if directory else make()
    except EffaxError as error:
        return IOFailure(error)
    used = tuple([i for i, _ in donations(done, donated)])
    program = CompiledProgram(jaxpr, done, module, executable, used)
    _cache.keep(key, program)
    return IOSuccess(program)


def run_program(
    program: CompiledProgram, buffers: Sequence[xla.Buffer]
) -> IOResult[list[xla.Buffer], LoweringError]:
    """Run a compiled program on one buffer for each input."""
    try:
        return IOSuccess(program.executable(buffers))
    except LoweringError as error:
        return IOFailure(error)
