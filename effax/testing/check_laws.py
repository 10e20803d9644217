"""Try laws, passes and rules on random programs; a program that breaks a law is shrunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

from effax.ir.errors import BadArgument
from effax.ir.registry import own_primitives
from effax.passes import AnyPass
from effax.passes.pipeline import passes_of
from effax.testing import laws
from effax.testing.generate.features import Features
from effax.testing.generate.focus import Focus, focus_of
from effax.testing.generate.random_programs import PLANTED
from effax.testing.generate.steps import step_names
from effax.testing.laws.law import LAW_PARAMETERS, Law, as_law
from effax.testing.laws.runner import Tried, raise_broken, try_all
from effax.testing.laws.transformations import Passes
from effax.transforms.framework.rules import RuleSet

AnyLaw = str | Callable[..., None]
"""A law, or the name of one of the library."""


def check_law(
    law: AnyLaw,
    passes: Passes | None = None,
    *,
    step: AnyPass | None = None,
    features: Features | None = None,
    focus: Focus | Sequence[Focus] = "",
    examples: int = 100,
    seed: int = 0,
) -> Tried:
    """Try a law on random programs.

    ::

        print(check_law(mine, focus="scan"))

    Args:
        law: the law, or the name of one of the library.
        passes: the passes to check, for a law that takes them; those of the library by default.
        step: the pass to check, for a law that takes ``step``.
        features: the features of the programs; those of the law by default.
        focus: the name of a kind of step (``effax.testing.step_names``), a primitive, a pattern, a
            rule, or a list of these, of which programs are full.
        examples: the number of programs. Equal ones count once, and most of the repeated ones are
            empty. Equal arguments try equal programs.
        seed: another one tries other programs.

    Returns:
        A report of the programs.

    Raises:
        LawBroken: it does not hold; the message has a small program, as a test to paste.
        BadArgument: it is no law, has unknown parameters, does not take an argument that was
            passed, returns a result, or applies to no program; or a kind of step is unknown.
    """
    __tracebackhide__ = True  # of pytest, whose reports end where the user's test does
    (found,) = laws_named(law)
    given = _given(passes)
    if step is not None:
        given["step"] = passes_of(step)
    for name, value in (("passes", passes), ("step", step)):
        if value is not None and not found.takes(name):
            raise _untaken(found, name)
    _check_step(found, given)
    if focus_of(focus).patterns and found.about not in PLANTED:
        raise BadArgument(
            f"the law {found.name} is about linear programs, which have no such patterns",
            expected="the name of a kind of step",
            found=f"focus={focus!r:.60}",
            remedy=f"one of {', '.join(step_names(linear=True))}",
        )
    trials = try_all([found], given, examples, features, focus, seed)
    return raise_broken(trials, strict=True)[0]


def check_laws(
    passes: Passes | None = None,
    *,
    only: AnyLaw | Sequence[AnyLaw] = (),
    focus: Focus | Sequence[Focus] = "",
    examples: int = 25,
    seed: int = 0,
) -> tuple[Tried, ...]:
    """Check passes, or a rule set, against the laws on random programs.

    ::

        check_laws(Passes(rules=DEFAULT_RULES.extend(Mine, rules)), focus="arith.mul")
        check_laws(dataclasses.replace(Passes(), dce=my_dce), only=["dce_is_observationally_equal"])

    Args:
        passes: the passes; those of the library if None.
        only: laws, or names of laws of the library; if empty, all that take passes.
        focus: as for ``check_law``. Linear programs have no patterns.
        examples: the number of programs a law. Equal arguments try equal programs.
        seed: another one tries other programs.

    Returns:
        A report for each law, the simplest law first.

    Raises:
        LawBroken: laws do not hold; the message has a small program for the simplest of them, as a
            test to paste, and names the others.
        BadArgument: ``passes`` is no ``Passes``; a law or a kind of step is unknown; or one of
            ``only`` applies to none of the programs.
    """
    __tracebackhide__ = True
    given = _given(passes)
    found = laws_named(only) or [law for law in laws.LAWS if law.takes("passes")]
    for law in found:
        _check_step(law, given)
    if passes is not None and not any(law.takes("passes") for law in found):
        raise _untaken(found[0], "passes")
    return raise_broken(try_all(found, given, examples, focus=focus, seed=seed), strict=bool(only))


def _given(passes: object) -> dict[str, object]:
    """Return the arguments of laws by name, but for the seed and the step."""
    if passes is not None and not isinstance(passes, Passes):
        raise BadArgument(
            "expected the passes as one value",
            expected="a `Passes`, or None for those of the library",
            found=f"{passes!r:.80}",
            remedy=_remedy(passes),
        )
    return {"passes": passes or Passes(), "primitives": own_primitives()}


def _remedy(found: object) -> str:
    several = found if isinstance(found, (list, tuple)) else [found]
    if any(isinstance(one, Law | str) for one in several):
        return "one law: `check_law(law)`; several: `check_laws(only=[...])`"
    if isinstance(found, AnyPass):
        return "for one pass `check_pass(...)`, or `check_law(law, step=...)`"
    if isinstance(found, RuleSet):
        return "`Passes(rules=...)`"
    return "replace one pass: `dataclasses.replace(Passes(), dce=my_dce)`"


def _untaken(law: Law[...], name: str) -> BadArgument:
    """Return the error for an argument that a law does not take."""
    return BadArgument(
        f"the law {law.name} does not take `{name}`",
        expected=f"a law with a parameter `{name}`: {LAW_PARAMETERS[name]}",
        found=f"{law.name}{law.signature}",
        remedy=f"leave `{name}` out, or make it a parameter of the law",
    )


def laws_named(given: AnyLaw | Sequence[AnyLaw]) -> list[Law[...]]:
    """Return laws by themselves or their names: those of others, then in the order of ``LAWS``.

    Raises BadArgument for anything else.
    """
    given = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    known = {law.name: law for law in laws.LAWS}
    unknown = [name for name in given if isinstance(name, str) and name not in known]
    if unknown:
        like = get_close_matches(unknown[0], known)
        raise BadArgument(
            "unknown law",
            expected=", ".join(known),
            found=", ".join(unknown),
            remedy=f"did you mean {' or '.join(like)}?" if like else None,
        )
    found = [as_law(known[law] if isinstance(law, str) else law) for law in given]
    places = {law: i for i, law in enumerate(laws.LAWS)}
    return sorted(found, key=lambda law: places.get(law, -1))


def _check_step(law: Law[...], given: dict[str, object]) -> None:
    if "step" in law.required and "step" not in given:
        raise BadArgument(
            f"the law {law.name} is about a pass",
            expected="`step`, a `Pass` or a composition of passes",
            remedy=f"`check_law({law.name}, step=...)`, or `check_pass(...)`",
        )
