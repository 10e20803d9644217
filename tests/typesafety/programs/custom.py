"""Functions with custom rules keep the signature of the decorated function."""

from typing import Any, assert_type

import effax
from effax import Array
from effax.custom_batching import custom_vmap, sequential_vmap
from effax.ir.prims import BatchedProgram
from effax.ir.syntax import Jaxpr
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.zero_propagation import propagate_zeros

X = effax.numpy.ones(3)


@effax.custom_jvp
def pushed(x: Array, scale: float = 1.0) -> Array:
    return x * scale


@pushed.defjvp
def pushed_rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return primals[0], tangents[0]


assert_type(pushed(X), Array)
assert_type(pushed_rule((X,), (X,)), tuple[Array, Array])
pushed(X, scale=2.0)
pushed()  # E: call-arg
pushed(X, "x")  # E: arg-type
pushed.def_vmap(pushed_rule)  # E: attr-defined


@effax.custom_vjp
def pulled(x: Array) -> tuple[Array, Array]:
    return x, x


pulled.defvjp(lambda x: (pulled(x), None), lambda res, ct: (ct,), symbolic_zeros=True)
assert_type(pulled(X), tuple[Array, Array])
pulled(X, X)  # E: call-arg
pulled.defvjp(lambda x: (pulled(x), None))  # E: call-arg


@custom_vmap
def batched(x: Array) -> Array:
    return x


@batched.def_vmap
def batched_rule(axis_size: int, in_batched: list[bool], x: Array) -> tuple[Array, bool]:
    return x, True


assert_type(batched(X), Array)
assert_type(batched_rule(3, [True], X), tuple[Array, bool])
batched("x")  # E: arg-type


@effax.custom_rules
def ruled(x: Array, y: Array) -> Array:
    return x * y


ruled.defjvp(pushed_rule)
ruled.defvjp(lambda x, y: (x * y, x), lambda x, ct: (ct, ct))
ruled.def_vmap(batched_rule)
assert_type(ruled(X, X), Array)
ruled(X)  # E: call-arg


@sequential_vmap
def looped(x: Array) -> Array:
    return x


assert_type(looped(X), Array)
looped()  # E: call-arg


@effax.checkpoint
def again(x: Array, n: int) -> Array:
    return x**n


assert_type(again(X, 2), Array)
again(X, "2")  # E: arg-type
effax.checkpoint(batched_rule, policy=3)  # E: arg-type


def beside(x: Array) -> tuple[Array, Any]:
    return x, lambda ct: (ct,)


effax.custom_gradient(beside)(X)
effax.custom_gradient(beside)(X, X)  # E: call-arg

effax.jacfwd(again)(X, 2)
effax.jacrev(again)(X)  # E: call-arg
effax.hessian(again)("x", 2)  # E: arg-type


def zero_at_zero(jaxpr: Jaxpr, rules: RuleSet) -> tuple[bool, ...]:
    return propagate_zeros(jaxpr, (True,), rules)


BatchedProgram(effax.make_jaxpr(again)(X, 2), (True,))  # E: arg-type
