"""Decorated functions keep the signature of what they decorate."""

from typing import assert_type

import effax
from effax import Array, Ref
from effax.ir import Cost


def loss(w: Array, x: Array, scale: float = 1.0) -> Array:
    return (w * x).sum() * scale


compiled = effax.jit(loss)
assert_type(compiled(effax.numpy.ones(3), effax.numpy.ones(3)), Array)
compiled(effax.numpy.ones(3), effax.numpy.ones(3), scale=2.0)
compiled(effax.numpy.ones(3))  # E: call-arg
compiled(effax.numpy.ones(3), "x")  # E: arg-type

gradient = effax.grad(loss)
assert_type(gradient(effax.numpy.ones(3), effax.numpy.ones(3)), Array)
gradient(effax.numpy.ones(3), effax.numpy.ones(3), 2.0)
gradient("w", effax.numpy.ones(3))  # E: arg-type

both = effax.value_and_grad(loss)
value, slope = both(effax.numpy.ones(3), effax.numpy.ones(3))
assert_type(value, Array)
assert_type(slope, Array)

batched = effax.vmap(loss)
assert_type(batched(effax.numpy.ones((2, 3)), effax.numpy.ones((2, 3))), Array)
batched()  # E: call-arg


def fill(ref: Ref, value: Array) -> None:
    ref[...] = value


effax.jit(fill)(effax.new_ref(0.0), effax.numpy.ones(()))
effax.jit(fill)(effax.numpy.ones(()), effax.numpy.ones(()))  # E: arg-type

passed = effax.apply_passes(loss, effax.passes.dce)
assert_type(passed(effax.numpy.ones(3), effax.numpy.ones(3)), Array)
passed(effax.numpy.ones(3), "x")  # E: arg-type

assert_type(effax.cost(loss)(effax.numpy.ones(3), effax.numpy.ones(3)), Cost)
assert_type(effax.cost(effax.make_jaxpr(loss)(effax.numpy.ones(3), effax.numpy.ones(3))), Cost)
