"""Optimizers as triples of functions: initial state, update, and parameters of a state.

The step number is an argument of the update, and a step size is a number or a function of it::

    >>> from effax.example_libraries import optimizers
    >>> opt_init, opt_update, get_params = optimizers.momentum(0.1, mass=0.9)
    >>> state = opt_init({"w": jnp.array([1.0, 2.0])})
    >>> for step in range(2):
    ...     state = opt_update(step, get_params(state), state)
    >>> get_params(state)["w"]
    Array([0.72, 1.44], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeAlias

import effax.numpy as jnp
from effax import tree as trees
from effax.arrays.array import Array, ArrayLike
from effax.example_libraries.schedules import (
    Schedule,
    Step,
    constant,
    exponential_decay,
    inverse_time_decay,
    make_schedule,
    piecewise_constant,
    polynomial_decay,
)
from effax.ir.errors import BadArgument, IllTyped
from effax.tree import PyTree, PyTreeDef
from effax.tree.registry import register_pytree_node

__all__ = [
    "JoinPoint",
    "LeafOptimizer",
    "Optimizer",
    "OptimizerState",
    "Schedule",
    "Step",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

P = ParamSpec("P")

LeafOptimizer: TypeAlias = tuple[
    Callable[[Array], PyTree], Callable[[Step, Array, PyTree], PyTree], Callable[[PyTree], Array]
]
"""An optimizer of one array: ``init(x)``, ``update(step, gradient, state)``, ``params(state)``."""


@dataclass(frozen=True)
class OptimizerState:
    """The state of an optimizer of a tree: the leaves of each array's state, and structures."""

    packed_state: tuple[list[PyTree], ...]
    tree_def: PyTreeDef
    subtree_defs: tuple[PyTreeDef, ...]


class Optimizer(NamedTuple):
    """An optimizer of a tree of arrays.

    Attributes:
        init_fn: ``params -> state``.
        update_fn: ``(step, gradients, state) -> state``.
        params_fn: ``state -> params``.
    """

    init_fn: Callable[[PyTree], OptimizerState]
    update_fn: Callable[[Step, PyTree, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], PyTree]


register_pytree_node(
    OptimizerState,
    lambda s: (s.packed_state, (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(tuple(children), *aux),
)


def optimizer(opt_maker: Callable[P, LeafOptimizer]) -> Callable[P, Optimizer]:
    """Return a maker of optimizers of trees, from one of optimizers of single arrays.

    Args:
        opt_maker: returns ``init``, ``update`` and ``params`` for one array.

    >>> @optimizers.optimizer
    ... def descent(step_size):
    ...     return lambda x: x, lambda step, g, x: x - step_size * g, lambda x: x
    >>> init, update, params = descent(0.5)
    >>> params(update(0, [2.0], init([3.0])))
    [2.0]
    """

    @wraps(opt_maker)
    def made(*args: P.args, **kwargs: P.kwargs) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_tree(params: PyTree) -> OptimizerState:
            leaves, treedef = trees.flatten(params)
            return _packed([init(x) for x in leaves], treedef)

        def update_tree(step: Step, grads: PyTree, state: OptimizerState) -> OptimizerState:
            slopes, treedef = trees.flatten(grads)
            if treedef != state.tree_def:
                raise IllTyped(
                    "the gradients have another structure than the parameters",
                    expected=str(state.tree_def),
                    found=str(treedef),
                )
            pairs = zip(slopes, _states(state), strict=True)
            new = [update(step, slope, own) for slope, own in pairs]
            return _packed(new, treedef, state.subtree_defs)

        def params_tree(state: OptimizerState) -> PyTree:
            return trees.unflatten(state.tree_def, [get_params(own) for own in _states(state)])

        return Optimizer(init_tree, update_tree, params_tree)

    return made


def _packed(
    states: Sequence[PyTree], treedef: PyTreeDef, wanted: Sequence[PyTreeDef] | None = None
) -> OptimizerState:
    leaves, structures = [], []
    for state in states:
        own, structure = trees.flatten(state)
        leaves.append(own)
        structures.append(structure)
    if wanted is not None and tuple(structures) != tuple(wanted):
        raise IllTyped(
            "the update of an optimizer changes the structure of its state",
            expected=", ".join(map(str, wanted)),
            found=", ".join(map(str, structures)),
        )
    return OptimizerState(tuple(leaves), treedef, tuple(structures))


def _states(state: OptimizerState) -> list[PyTree]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [trees.unflatten(structure, leaves) for structure, leaves in pairs]


@optimizer
def sgd(step_size: ArrayLike | Schedule) -> LeafOptimizer:
    """Return gradient descent: ``x - α g``.

    Args:
        step_size: α, a scalar or a schedule.
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size: ArrayLike | Schedule, mass: float) -> LeafOptimizer:
    """Return gradient descent with momentum: ``v = μ v + g; x - α v``.

    Args:
        step_size: α, a scalar or a schedule.
        mass: μ.
    """
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: ArrayLike | Schedule, mass: float) -> LeafOptimizer:
    """Return descent with Nesterov's momentum: ``v = μ v + g; x - α (μ v + g)``.

    Args:
        step_size: α, a scalar or a schedule.
        mass: μ.
    """
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: ArrayLike | Schedule, momentum: float = 0.9) -> LeafOptimizer:
    """Return AdaGrad with momentum: ``s = s + g²; m = μ m + (1 - μ) g / √s; x - α m``.

    Args:
        step_size: α, a scalar or a schedule.
        momentum: μ.

    Source: Duchi, Hazan and Singer, 2011.
    """
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - size(i) * m, squares, m

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(
    step_size: ArrayLike | Schedule, gamma: float = 0.9, eps: float = 1e-8
) -> LeafOptimizer:
    """Return RMSProp: ``s = γ s + (1 - γ) g²; x - α g / √(s + ε)``.

    Args:
        step_size: α, a scalar or a schedule.
        gamma: γ.
        eps: ε.
    """
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        return x - size(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(
    step_size: ArrayLike | Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> LeafOptimizer:
    """Return RMSProp with momentum: ``m = μ m + α g / √(s + ε); x - m``, with s as ``rmsprop``.

    Args:
        step_size: α, a scalar or a schedule.
        gamma: the decay of s.
        eps: ε.
        momentum: μ.
    """
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, squares, m = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        m = momentum * m + size(i) * g / jnp.sqrt(squares + eps)
        return x - m, squares, m

    return _with_zeros(2), update, _first


@optimizer
def adam(
    step_size: ArrayLike | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> LeafOptimizer:
    """Return Adam: ``m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²; x - α m̂ / (√v̂ + ε)``.

    At step i, ``m̂ = m / (1 - β₁^(i+1))`` and ``v̂ = v / (1 - β₂^(i+1))``.

    Args:
        step_size: α, a scalar or a schedule.
        b1: β₁.
        b2: β₂.
        eps: ε.

    Source: Kingma and Ba, 2015.
    """
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        variance = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - size(i) * mean / (jnp.sqrt(variance) + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def adamax(
    step_size: ArrayLike | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> LeafOptimizer:
    """Return AdaMax: ``m = β₁ m + (1 - β₁) g; u = max(β₂ u, |g|); x - α m̂ / (u + ε)``.

    At step i, ``m̂ = m / (1 - β₁^(i+1))``.

    Args:
        step_size: α, a scalar or a schedule.
        b1: β₁.
        b2: β₂.
        eps: ε.

    Source: Kingma and Ba, 2015.
    """
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - size(i) * mean / (u + eps), m, u

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: ArrayLike | Schedule, momentum: float = 0.9) -> LeafOptimizer:
    """Return SM3, as AdaGrad with one accumulator an axis: ``s = min over axes + g²``.

    The accumulator of an axis is the maximum of s over the others.

    Args:
        step_size: a scalar or a schedule.
        momentum: the decay of the mean of updates.

    Source: Anil, Gupta, Koren and Singer, 2019.
    """
    size = make_schedule(step_size)

    def init(x: Array) -> PyTree:
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape or (1,)]

    def update(i: Step, g: Array, state: PyTree) -> PyTree:
        x, m, covers = state
        least = _least(covers, jnp.shape(g))
        squares = least + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        axes = range(squares.ndim)
        covers = [jnp.max(squares, [j for j in axes if j != k]) for k in axes]
        return x - size(i) * m, m, covers or [squares.reshape(1)]

    return init, update, _first


def _least(covers: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Return the minimum of the accumulators of all axes, in this shape."""
    n = len(shape)
    least = covers[0].reshape((-1,) + (1,) * (n - 1) if n else ())
    for k in range(1, n):
        least = jnp.minimum(least, covers[k].reshape((1,) * k + (-1,) + (1,) * (n - 1 - k)))
    return least


def _inverse_root(squares: Array) -> Array:
    """Return ``1 / √squares``, 0 where it is 0."""
    positive = squares > 0
    return jnp.where(positive, 1 / jnp.sqrt(jnp.where(positive, squares, 1)), 0)


def _with_zeros(count: int) -> Callable[[Array], PyTree]:
    """Return the initial state of an array: itself, and ``count`` arrays of zeros."""
    return lambda x: (x, *[jnp.zeros_like(x) for _ in range(count)])


def _first(state: PyTree) -> PyTree:
    return state[0]


def l2_norm(tree: PyTree) -> Array:
    """Return the Euclidean norm of all numbers in a tree.

    >>> optimizers.l2_norm({"a": 3.0, "b": jnp.array([0.0, 4.0])})
    Array(5., dtype=float32)
    """
    return jnp.sqrt(sum([jnp.vdot(x, x).real for x in trees.leaves(tree)], start=jnp.float32(0)))


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> PyTree:
    """Return gradients scaled so that their norm is at most ``max_norm``.

    >>> optimizers.clip_grads([jnp.array([3.0, 4.0])], 1.0)
    [Array([0.6, 0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    factor = jnp.where(norm < max_norm, 1, max_norm / norm)
    return trees.map(lambda g: g * factor.astype(jnp.result_type(g)), grad_tree)


class JoinPoint:
    """A leaf that contains a subtree: the state of one array."""

    def __init__(self, subtree: PyTree) -> None:
        self.subtree: PyTree = subtree

    def __iter__(self) -> PyTree:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """Return a state as a tree of ``JoinPoint``s in the structure of the parameters.

    It can be saved: it has no structures but those of tuples, dicts and the parameters.
    """
    joined = [JoinPoint(own) for own in _states(opt_state)]
    return trees.unflatten(opt_state.tree_def, joined)


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """Return the state of a tree of ``JoinPoint``s; the inverse of ``unpack_optimizer_state``.

    Raises:
        BadArgument: a leaf is not a ``JoinPoint``.
    """
    leaves, treedef = trees.flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise BadArgument(
                "pack_optimizer_state takes the tree that unpack_optimizer_state returns",
                expected="a JoinPoint at each leaf",
                found=f"{type(leaf).__name__}: {leaf!r:.60}",
            )
    return _packed([leaf.subtree for leaf in leaves], treedef)
