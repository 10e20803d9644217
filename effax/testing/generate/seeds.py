"""Seeds for which laws batch and differentiate all combinations of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from effax.ir.syntax import Jaxpr
from effax.testing.laws.jvp import differentiated
from effax.testing.laws.vmap import random_batch
from effax.transforms.framework.propagation import Mask

FEW: Final = 3
"""Up to so many arguments, all combinations are tried."""

MOST_SEEDS: Final = 60


def seeds_for(law: str, jaxpr: Jaxpr, seeds: Sequence[int]) -> list[int]:
    """Return the seeds, with more for combinations that a law has not tried."""
    drawn = _DRAWS.get(law)
    if drawn is None or not seeds:
        return list(seeds)
    found = [*seeds, *(_of_sizes(jaxpr, seeds) if drawn is _batched else [])]
    if len(jaxpr.binders) < 2:
        return found
    seen = {mask for seed in found if (mask := drawn(jaxpr, seed)) is not None}
    for seed in range(1, MOST_SEEDS):
        if len(seen) >= 2 ** len(jaxpr.binders) - 1 or len(jaxpr.binders) > FEW:
            break
        mask = drawn(jaxpr, seed)
        if mask is not None and mask not in seen:
            seen.add(mask)
            found.append(seed)
    return found


def _batched(jaxpr: Jaxpr, seed: int) -> Mask | None:
    batch = random_batch(jaxpr, seed)
    mask = tuple([axis is not None for axis in batch.axes])
    return mask if batch.size > 1 and any(mask) else None


def _of_sizes(jaxpr: Jaxpr, seeds: Sequence[int]) -> list[int]:
    """Return seeds that batch all arguments in batches of the sizes that the others lack."""
    found: list[int] = []
    seen = {_whole_size(jaxpr, seed) for seed in seeds}
    for seed in range(MOST_SEEDS):
        size = _whole_size(jaxpr, seed)
        if size not in seen:
            seen.add(size)
            found.append(seed)
    return found


def _whole_size(jaxpr: Jaxpr, seed: int) -> int | None:
    """Return the size of the batch of a seed that batches all arguments; else None."""
    batch = random_batch(jaxpr, seed)
    return None if None in batch.axes else batch.size


def _moved(jaxpr: Jaxpr, seed: int) -> Mask | None:
    mask = differentiated(jaxpr.in_types, seed)
    return mask if any(mask) else None


_DRAWS: Final[dict[str, Callable[[Jaxpr, int], Mask | None]]] = {
    "vmap_is_stacking": _batched,
    "jvp_is_the_derivative": _moved,
    "vjp_is_adjoint_to_jvp": _moved,
}
