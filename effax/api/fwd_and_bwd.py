"""``fwd_and_bwd``: the forward and the backward pass of a function, compiled once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effax.api.jit import jit
from effax.api.vjp import vjp
from effax.arrays.argument_checks import argument_positions, check_callable
from effax.tree import PyTree


def fwd_and_bwd(
    fun: Callable[..., object],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., PyTree], Callable[..., PyTree]]:
    """Return the forward and the backward pass of ``fun`` as two functions.

    ``fwd(*args)`` is ``vjp`` of ``fun`` at the arguments of ``argnums``, and ``bwd(pullback, ct)``
    applies the pullback. A loop that calls them compiles each once.

    Args:
        fun: a function of trees of arrays.
        argnums: the position, or the positions, of the arguments to differentiate.
        has_aux: whether ``fun`` returns a pair, whose second part is not differentiated.
        jitted: whether the two functions are compiled.

    Returns:
        ``fwd``, which returns ``(result, pullback)``, with the second part of the pair last where
        ``has_aux``; and ``bwd``, which returns the cotangent of the argument at ``argnums``, or a
        tuple of them where that is a sequence.

    Raises:
        BadArgument: ``fun`` is not callable; called, ``argnums`` is out of range.

    >>> fwd, bwd = effax.fwd_and_bwd(jnp.multiply, argnums=0)
    >>> y, pullback = fwd(2.0, 3.0)
    >>> print(y, bwd(pullback, 1.0))
    6.0 3.0
    """
    check_callable(fun, "fwd_and_bwd")

    def fwd(*args: object, **kwargs: object) -> PyTree:
        nums = argument_positions(argnums, len(args), "fwd_and_bwd")

        def of_these(*given: object) -> object:
            full = list(args)
            for i, x in zip(nums, given, strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        return vjp(of_these, *[args[i] for i in nums], has_aux=has_aux)

    def bwd(pullback: Callable[..., tuple[PyTree, ...]], cotangent: object) -> PyTree:
        found = pullback(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
