"""Step sizes of optimizers as functions of the step number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.ir.errors import BadArgument

Step: TypeAlias = Array | int
Schedule: TypeAlias = Callable[[Step], ArrayLike]
"""A step size as a function of the step number."""


def make_schedule(scalar_or_schedule: ArrayLike | Schedule) -> Schedule:
    """Return a schedule: the argument, or the constant one for a number.

    Raises:
        BadArgument: it is neither a function nor a scalar.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule):
        raise BadArgument(
            "a step size is a scalar or a function of the step number",
            expected="a scalar",
            found=f"an array of shape {jnp.shape(scalar_or_schedule)}",
        )
    return constant(scalar_or_schedule)


def constant(step_size: ArrayLike) -> Schedule:
    """Return the schedule of the same step size for all steps."""
    return lambda step: step_size


def exponential_decay(step_size: ArrayLike, decay_steps: float, decay_rate: float) -> Schedule:
    """Return the schedule ``step_size · decay_rate^(i / decay_steps)``."""
    return lambda step: jnp.multiply(step_size, decay_rate ** jnp.divide(step, decay_steps))


def inverse_time_decay(
    step_size: ArrayLike, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Schedule:
    """Return the schedule ``step_size / (1 + decay_rate · i / decay_steps)``.

    ``staircase`` rounds ``i / decay_steps`` down.
    """

    def schedule(step: Step) -> ArrayLike:
        passed = jnp.divide(step, decay_steps)
        return step_size / (1 + decay_rate * (jnp.floor(passed) if staircase else passed))

    return schedule


def polynomial_decay(
    step_size: ArrayLike, decay_steps: float, final_step_size: ArrayLike, power: float = 1.0
) -> Schedule:
    """Return the schedule from ``step_size`` to ``final_step_size`` in ``decay_steps`` steps.

    At step i it is ``final + (1 - min(i / decay_steps, 1))^power · (step_size - final)``.
    """

    def schedule(step: Step) -> ArrayLike:
        left = 1 - jnp.minimum(step, decay_steps) / decay_steps
        return left**power * jnp.subtract(step_size, final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: ArrayLike, values: ArrayLike) -> Schedule:
    """Return the schedule with ``values[k]`` for steps above k of the ``boundaries``.

    Raises:
        BadArgument: there is not one value more than boundaries.
    """
    limits, sizes = jnp.asarray(boundaries), jnp.asarray(values)
    if not limits.ndim == sizes.ndim == 1 or len(sizes) != len(limits) + 1:
        raise BadArgument(
            "piecewise_constant takes one value more than boundaries",
            expected=f"{limits.size + 1} values",
            found=f"boundaries of shape {limits.shape} and values of shape {sizes.shape}",
        )
    return lambda step: sizes[jnp.sum(jnp.greater(step, limits))]
