"""The types of a function determine those of its derivative, its batched form and its loop."""

from typing import NamedTuple, assert_type

import effax
from effax import Array, Ref
from effax.lax import cond, foreach, fori_loop, map, scan, switch, while_loop
from effax.numpy import float32, ones, zeros

X = ones(3)
Params = dict[str, Array]


def predict(params: Params, x: Array) -> Array:
    return x @ params["w"] + params["b"]


def loss(params: Params, x: Array, y: Array) -> Array:
    return ((predict(params, x) - y) ** 2).mean()


@effax.jit
def train(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
    value, grads = effax.value_and_grad(loss)(params, x, y)
    assert_type(value, Array)
    assert_type(grads, Params)
    return {name: p - 0.1 * grads[name] for name, p in params.items()}, value


start: Params = {"w": zeros(3), "b": zeros(())}
assert_type(train(start, X, X), tuple[Params, Array])
train(X, start, X)  # E: arg-type
train(start, X)  # E: call-arg

assert_type(effax.grad(loss)(start, X, X), Params)
assert_type(effax.grad(loss, argnums=1)(start, X, X), Array)
assert_type(effax.grad(loss, argnums=(0, 1))(start, X, X), tuple[Params, Array])
assert_type(effax.value_and_grad(loss, (0, 1))(start, X, X)[1], tuple[Params, Array])
effax.grad(loss)(X, X, X)  # E: arg-type
effax.grad(3)  # E: call-overload


def scored(params: Params, x: Array) -> tuple[Array, str]:
    return predict(params, x).sum(), "aux"


assert_type(effax.grad(scored, has_aux=True)(start, X), tuple[Params, str])
assert_type(effax.jvp(predict, (start, X), (start, X)), tuple[Array, Array])
effax.jvp(predict, (X, X), (X, X))  # E: arg-type

out, pull = effax.vjp(predict, start, X)
assert_type(out, Array)
assert_type(pull(out), tuple[Params, Array])
effax.vjp(predict, X, start)  # E: arg-type, call-arg
out, push = effax.linearize(predict, start, X)
assert_type(push(start, X), Array)
push(X, X)  # E: arg-type


class State(NamedTuple):
    at: Array
    steps: Array


def step(state: State, x: Array) -> tuple[State, Array]:
    return State(state.at + x, state.steps + 1), state.at


first = State(zeros(()), zeros((), "int32"))
assert_type(scan(step, first, X), tuple[State, Array])
assert_type(scan(lambda c, x: (c + x, c), 0.0, X), tuple[Array, Array])
assert_type(scan(lambda c, _: (c * 2, None), X, length=3), tuple[Array, None])
scan(step, X, X)  # E: arg-type
scan(step, first, X, lenght=3)  # E: call-overload

assert_type(while_loop(lambda s: s.at < 3, lambda s: s._replace(at=s.at + 1), first), State)
assert_type(fori_loop(0, 3, lambda i, c: c + i, X), Array)
assert_type(cond(True, lambda x: x + 1, lambda x: x - 1, X), Array)
assert_type(cond(X.sum() > 0, predict, predict, start, X), Array)
cond(True, predict, predict, X, start)  # E: arg-type, call-arg
assert_type(switch(1, [predict, predict], start, X), Array)
assert_type(map(lambda x: x * 2, X), Array)


@foreach(X, X)
def sums(x: Array, y: Array) -> Array:
    return x + y


assert_type(sums, Array)


@foreach(X)  # E: arg-type
def wrong(x: Array, y: Array) -> Array:
    return x + y


assert_type(effax.vmap(predict, in_axes=(None, 0))(start, X), Array)
effax.vmap(lambda x: x * 2)(X)
effax.vmap(predict)(X)  # E: arg-type, call-arg


class Model:
    @effax.jit
    def __call__(self, x: Array) -> Array:
        return x


assert_type(Model()(X), Array)


def count(total: Ref, x: Array) -> None:
    total[...] += x


def predict_one(x: Array) -> Array:
    return x * 2


effax.jit(count)(effax.new_ref(0.0), float32(1))
effax.jit(count)(X, X)  # E: arg-type
assert_type(effax.jacfwd(predict_one)(X), Array)
