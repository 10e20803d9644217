"""Values that backward rules log: named by the transposed program, then among its results.

A backward rule of ``defvjp_with_logs`` returns values to log after its cotangents. ``logging``
marks its linear call, whose transpose names them, and ``harvested`` returns what is named::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = name[label=log /f] b in (a,) }
    { lambda ; a:f32[]. let b:f32[] = sin a in (a, b) }
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from effax.ir.edit.operations import everywhere
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import BadArgument, NotApplicable
from effax.ir.memo import memoize
from effax.ir.prims import Cond, CustomLinear, Jit, Name, Remat, Scan
from effax.ir.syntax import Atom, Jaxpr

LOGGED: Final = "log "
"""The beginning of the names of logged values."""


class Harvest(NamedTuple):
    """A program with logged values as further results, and their paths."""

    jaxpr: Jaxpr
    paths: tuple[str, ...]


def logging(jaxpr: Jaxpr) -> Jaxpr:
    """Return a linear program whose transpose names the values that backward rules log."""
    return everywhere(_marked, jaxpr)


def _marked(jaxpr: Jaxpr) -> Jaxpr:
    made = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        prim, ins = eqn.prim, made.operands(eqn)
        if isinstance(prim, CustomLinear) and not prim.paired:
            made.replace(eqn, made.emit(eqn, replace(prim, logging=True), ins))
        else:
            made.keep(eqn, ins)
    return made.finish()


def harvested(jaxpr: Jaxpr) -> Harvest:
    """Return the program with its logged values as results, those of loops stacked.

    Raises:
        BadArgument: two values have one path.
        NotApplicable: a branch, or another part that does not run once, logs a value.
    """
    made = _harvested(jaxpr)
    seen: set[str] = set()
    for path in made.paths:
        if path in seen:
            raise BadArgument(
                f"two backward rules log a value named {path[1:]!r}",
                expected="names that differ",
                remedy="choose another name in one of the rules",
            )
        seen.add(path)
    return made


@memoize(maxsize=256)
def _harvested(jaxpr: Jaxpr) -> Harvest:
    made, paths, values = Rewriter(jaxpr), list[str](), list[Atom]()
    for eqn in jaxpr.eqns:
        prim, ins = eqn.prim, made.operands(eqn)
        if isinstance(prim, Name) and prim.label.startswith(LOGGED):
            paths.append(prim.label.removeprefix(LOGGED))
            values.append(ins[0])
            made.replace(eqn, ins)
            continue
        inner = [_harvested(program) for program in prim.subjaxprs()]
        found = inner[0].paths if inner else ()
        if not any(h.paths for h in inner):
            made.keep(eqn, ins)
            continue
        if not isinstance(prim, Jit | Remat | Scan):
            raise NotApplicable(
                f"a backward rule in {prim.name} logs values",
                expected="calls of jit, checkpoint, vmap and scan around the rule",
                found="a branch, which may not run" if isinstance(prim, Cond) else prim.name,
                remedy="leave the values out of the logs there",
            )
        outs = made.emit(eqn, prim.with_subjaxprs([h.jaxpr for h in inner]), ins)
        n = len(eqn.outs)
        made.replace(eqn, outs[:n])
        paths += found
        values += outs[n:]
    return Harvest(made.build([*made.results(), *values]) if paths else jaxpr, tuple(paths))
