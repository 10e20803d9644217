"""The three forms of a pass, from one decorator: public, cached and uncached."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Final, ParamSpec, Protocol, TypeVar, cast

from returns.result import Result

from effax.ir.errors import TransformError
from effax.ir.memo import memoize
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import as_result

A = ParamSpec("A")
B = ParamSpec("B")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class JaxprPass(Protocol[A, B, T_co]):
    """A pass: called, it returns a ``Result``; passes and rules call ``cached`` or ``uncached``."""

    def __call__(self, *args: A.args, **kwargs: A.kwargs) -> Result[T_co, TransformError]: ...

    @property
    def cached(self) -> Callable[B, T_co]:
        """Run the pass, or return an equal earlier result. Raises TransformError.

        Equal jaxprs share a result, so its source lines and names may be those of another one.
        """
        ...

    @property
    def uncached(self) -> Callable[B, T_co]:
        """Run the pass on this very jaxpr, whose source lines and names are kept."""
        ...


def jaxpr_pass(
    inner: Callable[B, T], maxsize: int
) -> Callable[[Callable[A, T]], JaxprPass[A, B, T]]:
    """Make a pass of the function that checks its arguments and calls ``inner``.

    Args:
        inner: the pass on checked, hashable arguments, the rules among them; raises
            ``TransformError``.
        maxsize: how many results ``cached`` keeps.
    """

    def decorate(public: Callable[A, T]) -> JaxprPass[A, B, T]:
        made = as_result(public)
        vars(made).update(cached=memoize(maxsize)(inner), uncached=inner)
        return cast("JaxprPass[A, B, T]", made)

    return decorate


class _Default:
    """The rules of public calls that pass none."""

    @cached_property
    def rules(self) -> RuleSet:
        """The rules of all families, until others are registered."""
        # By name, because the rules of families use this module.
        return cast(RuleSet, import_module("effax.transforms.rules.default").DEFAULT_RULES)


_default: Final = _Default()


def register_default_rules(rules: RuleSet) -> None:
    """Set the rules that :func:`rules_or_default` returns."""
    vars(_default)["rules"] = rules


def rules_or_default(rules: RuleSet | None) -> RuleSet:
    """Return the given rules, or the registered ones where it is None."""
    return _default.rules if rules is None else rules


def _reduced(rules: RuleSet) -> tuple[Callable[..., RuleSet], tuple[object, ...]]:
    if rules is _default.rules:
        return (rules_or_default, (None,))
    return (RuleSet, (rules.rules,))


# The registered rules are pickled by reference: some are local functions.
copyreg.pickle(RuleSet, _reduced)
