"""Laws of the discharge of references."""

from __future__ import annotations

from effax.effects import SideEffect
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType
from effax.testing.generate.values import check_all, random_inputs, run
from effax.testing.laws.law import law
from effax.testing.laws.transformations import LIBRARY, Passes


def mentions_refs(jaxpr: Jaxpr) -> bool:
    """Return whether a reference occurs anywhere in the program."""
    types = [v.type for v in jaxpr.binders] + [v.type for e in jaxpr.eqns for v in e.outs]
    return any(isinstance(t, RefType) for t in types) or any(
        mentions_refs(inner) for eqn in jaxpr.eqns for inner in eqn.prim.subjaxprs()
    )


@law(of_primitives=True)
def discharge_is_observationally_equal(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """discharge(f)(x, contents) = (f(x), final contents); no reference is left."""
    done = passes.discharge(jaxpr)
    assert not mentions_refs(done.jaxpr), f"a reference is left:\n{done.jaxpr}"
    left = [e for e in done.jaxpr.effects if not isinstance(e, SideEffect)]
    assert not left, f"effects on references are left: {done.jaxpr.effects}"
    refs = tuple(i for i, t in enumerate(jaxpr.in_types) if isinstance(t, RefType))
    assert done.refs == refs, f"the references are {refs}, not {done.refs}"
    inputs = random_inputs(jaxpr.in_types, seed)
    expected = run(jaxpr, inputs)
    found = run(done.jaxpr, inputs).outs
    check_all("result", expected.outs, found[: done.n_outs])
    new = dict(zip(done.changed, found[done.n_outs :], strict=True))
    final = [new.get(i, inputs[i]) for i in refs]
    check_all("final content of reference", expected.contents, final)


@law
def discharge_of_pure_is_identity(jaxpr: Jaxpr, passes: Passes = LIBRARY) -> None:
    """discharge(f) is f, the same object, where f mentions no reference; it is idempotent."""
    done = passes.discharge(jaxpr)
    if not mentions_refs(jaxpr):
        assert done.jaxpr is jaxpr, "a pure program has changed"
    assert passes.discharge(done.jaxpr).jaxpr is done.jaxpr, "a second discharge changes something"
