"""``custom_jvp``, ``custom_vjp``, ``custom_vmap``, and ``custom_rules``, which combines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import effax.numpy as jnp
from effax import tree
from effax.api.custom.call import Custom
from effax.api.custom.jvp_rule import UserJvpRule
from effax.api.custom.vjp_rule import UserVjpRule
from effax.arrays.argument_checks import check_callable
from effax.arrays.array import Array
from effax.ir.errors import BadArgument
from effax.lax.control import map as lax_map
from effax.tree import PyTree

P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", bound=Callable[..., object])


class custom_jvp(Custom[P, R]):  # noqa: N801  JAX's name
    """A function whose forward derivative is set by ``defjvp``.

    The rule takes ``(primals, tangents)`` as tuples and returns ``(result, tangent of result)``.
    Arguments at ``nondiff_argnums`` (or ``nondiff_argnames``) come first in the rule, and have no
    tangents.
    """

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """Set the rule, and return it: a decorator.

        With ``symbolic_zeros`` the rule takes a ``custom_derivatives.SymbolicZero`` for each
        tangent that is known to be zero, and may return such.
        """
        check_callable(jvp, f"defjvp of {self.label}")
        self._jvp = UserJvpRule(jvp, symbolic_zeros)
        return jvp

    def defjvps(self, *jvps: Callable[..., object] | None) -> None:
        """Set one rule an argument: ``(tangent, result, *primals) -> tangent of the result``.

        A rule of None: the result does not depend on that argument.

        Raises:
            BadArgument: a rule is not callable, or there are ``nondiff_argnums``.
        """
        for rule in jvps:
            if rule is not None:
                check_callable(rule, f"defjvps of {self.label}")
        if self.nondiff:
            raise BadArgument(
                f"defjvps of {self.label} with nondifferentiable arguments",
                expected="no nondiff_argnums",
                found=str(self.nondiff),
                remedy="use `defjvp`",
            )

        def jvp(primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> tuple[PyTree, PyTree]:
            if len(jvps) != len(primals):
                raise BadArgument(
                    f"defjvps of {self.label} has the wrong number of rules",
                    expected=str(len(primals)),
                    found=str(len(jvps)),
                )
            out = self(*primals)  # type: ignore[call-arg]  # the primals are the arguments
            pairs = zip(jvps, tangents, strict=True)
            parts = [rule(t, out, *primals) for rule, t in pairs if rule is not None]
            total = parts[0] if parts else tree.map(jnp.zeros_like, out)
            for part in parts[1:]:
                total = tree.map(jnp.add, total, part)
            return out, total

        self._jvp = UserJvpRule(jvp, False)

    def _missing(self) -> str | None:
        return "a rule" if self._jvp is None else None


class custom_vjp(Custom[P, R]):  # noqa: N801  JAX's name
    """A function whose reverse derivative is set by ``defvjp(fwd, bwd)``.

    ``fwd`` takes the arguments and returns ``(result, residuals)``; ``bwd`` takes the residuals and
    the result's cotangent and returns one cotangent an argument (None: zero). A reference among
    the residuals must be an argument of ``fwd``; ``bwd`` then takes that reference. Arguments at
    ``nondiff_argnums`` (or ``nondiff_argnames``) come first in ``bwd``, and have no cotangents.
    """

    def defvjp(
        self,
        fwd: Callable[..., object],
        bwd: Callable[..., object],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules.

        Args:
            fwd: the forward rule.
            bwd: the backward rule.
            symbolic_zeros: whether ``fwd`` takes a ``custom_derivatives.CustomVJPPrimal`` for each
                leaf of its arguments, which says if that is differentiated, and ``bwd`` a
                ``SymbolicZero`` for each cotangent that is known to be zero.
            optimize_remat: for compatibility with JAX: ``checkpoint`` always recomputes only the
                part of ``fwd`` that the backward pass uses.
        """
        self._set(fwd, bwd, symbolic_zeros, "defvjp")

    def defvjp_with_logs(
        self,
        fwd: Callable[..., object],
        bwd: Callable[..., object],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules, of which the second one logs: ``pullback.with_logs(ct)`` returns that.

        Args:
            fwd: the forward rule, as of :meth:`defvjp`.
            bwd: a backward rule that returns a pair: the cotangents, and None or a dict of values
                by name: trees of dicts, tuples and lists. They are dropped where the pullback is
                called otherwise, and where no cotangent of the call is used.
            symbolic_zeros: as of :meth:`defvjp`.
            optimize_remat: as of :meth:`defvjp`.
        """
        self._set(fwd, bwd, symbolic_zeros, "defvjp_with_logs")

    def _set(
        self,
        fwd: Callable[..., object],
        bwd: Callable[..., object],
        symbolic_zeros: bool,
        setter: str,
    ) -> None:
        check_callable(fwd, f"{setter} of {self.label}: fwd")
        check_callable(bwd, f"{setter} of {self.label}: bwd")
        self._vjp = UserVjpRule(fwd, bwd, symbolic_zeros, setter == "defvjp_with_logs")

    def _missing(self) -> str | None:
        return "rules" if self._vjp is None else None


class custom_vmap(Custom[P, R]):  # noqa: N801  JAX's name
    """A function whose batching rule is set by ``def_vmap``.

    The rule takes ``(axis_size, in_batched, *args)``: the batch size; a list with a tree of
    booleans for each argument, whether a leaf has the batch axis, its first; and the arguments.
    It returns ``(result, out_batched)``, with a boolean for each leaf of the result.
    """

    def __init__(self, fun: Callable[P, R]) -> None:
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Rule) -> Rule:
        """Set the rule, and return it: a decorator.

        A value that the rule closes over must be closed over by the function too.
        """
        check_callable(vmap_rule, f"def_vmap of {self.label}")
        self._vmap = vmap_rule
        return vmap_rule

    def _missing(self) -> str | None:
        return "a batching rule" if self._vmap is None else None


class custom_rules(custom_jvp[P, R], custom_vjp[P, R], custom_vmap[P, R]):  # noqa: N801  as the others
    """A function with rules for both derivatives and for batching, or any of them.

    Forward derivatives are those of ``defjvp``, reverse ones those of ``defvjp``; where one of the
    two is missing, ``defjvp`` serves for both, and ``defvjp`` for reverse ones only. Without
    either, the function itself is differentiated. ``def_vmap`` batches the function; its
    derivatives are batched as the programs of their rules.

    Arguments at ``nondiff_argnums`` (or ``nondiff_argnames``) come first in the rules, in the
    batching rule after ``axis_size`` and ``in_batched``, which has no entries for them.

    Laws: tests/laws/test_custom_rules.py
    """

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        Custom.__init__(self, fun, nondiff_argnums, nondiff_argnames)

    def _missing(self) -> str | None:
        return Custom._missing(self)


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """Return ``f`` with a batching rule that runs it for the batch elements in sequence."""
    made = custom_vmap(f)

    @made.def_vmap
    def rule(axis_size: int, in_batched: list[object], *args: object) -> tuple[R, object]:
        leaves, treedef = tree.flatten(args)
        flags = tree.leaves(tuple(in_batched))
        mapped = [x for x, has in zip(leaves, flags, strict=True) if has]

        def one(element: list[Array]) -> R:
            rest = iter(element)
            full = [next(rest) if has else x for x, has in zip(leaves, flags, strict=True)]
            return made(*tree.unflatten(treedef, full))  # type: ignore[call-arg]  # they are its arguments

        out = lax_map(one, mapped)
        return out, tree.map(lambda _: True, out)

    return made
