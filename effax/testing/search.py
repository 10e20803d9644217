"""Try laws, passes and rules on random programs with one call; what breaks is made small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

from effax.ir.errors import BadArgument
from effax.passes import Step
from effax.passes.steps import passes_of
from effax.testing import laws
from effax.testing.features import Features
from effax.testing.passes import Passes
from effax.testing.statement import Law, tried_law
from effax.testing.trying import Tried, told, try_all

AnyLaw = str | Callable[..., None]
"""A law, or the name of one of the library."""


def check_law(
    law: AnyLaw,
    passes: Passes | None = None,
    *,
    step: Step | None = None,
    features: Features | None = None,
    focus: str = "",
    examples: int = 100,
) -> Tried:
    """Try a law on random programs.

    ::

        print(check_law(mine, focus="scan"))

    Args:
        law: the law, or the name of one of the library.
        passes: the passes that it is about, where it takes them; the library's own by default.
        step: the pass that it is about, where it takes ``step``.
        features: what the programs have; what the law says by default.
        focus: the kind of step that programs are full of (``effax.testing.step_names``).
        examples: how many programs are tried. Equal arguments try equal programs.

    Returns:
        What it was tried on.

    Raises:
        LawBroken: it does not hold; the message has a small program, as a test to paste.
        BadArgument: it is no law, it takes what nobody gives, it says nothing about any program
            that was tried, or there is no such kind of step.
    """
    __tracebackhide__ = True  # of pytest, whose reports end where the user's test does
    (found,) = found_laws([law])
    given: dict[str, object] = {"passes": passes or Passes()}
    if step is not None:
        given["step"] = passes_of(step)
    _check_step(found, given)
    trials = try_all([found], given, examples, features, focus)
    return told(trials, strict=True)[0]


def check_laws(
    passes: Passes | None = None,
    *,
    only: Sequence[AnyLaw] = (),
    focus: str = "",
    examples: int = 25,
) -> tuple[Tried, ...]:
    """Hold passes, or the rules of a book, to the laws on random programs.

    ::

        check_laws(Passes(book=DEFAULT_BOOK.extend(Mine, rules)), focus="elementwise.mul")
        check_laws(dataclasses.replace(Passes(), dce=my_dce), only=["dce_keeps_what_is_observed"])

    Args:
        passes: the passes; the library's own where it is None.
        only: laws, or names of laws of the library; all that take passes where none is given.
        focus: the kind of step that programs are full of (``effax.testing.step_names``).
        examples: how many programs a law is tried on. Equal arguments try equal programs.

    Returns:
        What each law was tried on, the simplest law first.

    Raises:
        LawBroken: laws do not hold; the message has a small program for the simplest of them, as a
            test to paste, and names the others.
        BadArgument: there is no such law, or no such kind of step; or one of ``only`` says nothing
            about any program that was tried.
    """
    __tracebackhide__ = True
    found = found_laws(only) or [law for law in laws.LAWS if law.takes("passes")]
    given: dict[str, object] = {"passes": passes or Passes()}
    for law in found:
        _check_step(law, given)
    return told(try_all(found, given, examples, focus=focus), strict=bool(only))


def found_laws(given: Sequence[AnyLaw]) -> list[Law[...]]:
    """Laws, from themselves or their names, in the order of the table, others first.

    Raises BadArgument for what is neither.
    """
    known = {law.name: law for law in laws.LAWS}
    unknown = [name for name in given if isinstance(name, str) and name not in known]
    if unknown:
        like = get_close_matches(unknown[0], known)
        raise BadArgument(
            "there is no such law",
            expected=", ".join(known),
            found=", ".join(unknown),
            remedy=f"did you mean {' or '.join(like)}?" if like else None,
        )
    found = [tried_law(known[law] if isinstance(law, str) else law) for law in given]
    places = {law: i for i, law in enumerate(laws.LAWS)}
    return sorted(found, key=lambda law: places.get(law, -1))


def _check_step(law: Law[...], given: dict[str, object]) -> None:
    if "step" in law.required and "step" not in given:
        raise BadArgument(
            f"the law {law.name} is about a pass",
            expected="`step`, a `Pass` or a composition of passes",
            remedy=f"`check_law({law.name}, step=...)`, or `check_pass(...)`",
        )
