"""Laws as values: a check, what it is about, and on which programs it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from typing import Final, Generic, ParamSpec, overload

from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.testing.features import ANYTHING, Features
from effax.testing.report import LawBroken
from effax.testing.values import Differs, is_chaotic

P = ParamSpec("P")


class About(Enum):
    """What a law is about: the first arguments that it takes."""

    PROGRAMS = "a program"
    REDUNDANT = "a program in which much is computed twice, overwritten, or undone"
    PAIRS = "two programs, of which the second takes the results of the first, then its references"
    LINEAR = "a program, and in which of its inputs it is linear"
    OPEN = "a program with collectives along an axis, and the axis"
    OPEN_LINEAR = "an open program, in which inputs it is linear, and the axis"
    GIVEN = "what its caller has: nothing that is random"

    @property
    def count(self) -> int:
        """How many arguments are drawn."""
        return {About.GIVEN: 0, About.PROGRAMS: 1, About.REDUNDANT: 1, About.OPEN_LINEAR: 3}.get(
            self, 2
        )


GIVEN_BY_NAME: Final = {
    "seed": "an integer, from which inputs are drawn",
    "passes": "the passes that are held to the law, a `Passes`",
    "step": "the pass that is held to it, a `Pass` or a composition",
    "primitives": "the primitives that a text may have, a `Registry`",
}
"""What a law may take after what it is about."""


class Unsaid(Exception):
    """A law has nothing to say about what it was given."""


def assume(condition: object) -> None:
    """Leave a law that says nothing where a condition does not hold; that is no run of it.

    Args:
        condition: anything with a truth.
    """
    if not condition:
        raise Unsaid


class Law(Generic[P]):
    """A law: a function that raises where it does not hold. Its docstring is the equation.

    Called, it raises ``LawBroken`` for whatever the function raises, and tells for which program.

    Attributes:
        check: the function.
        about: what its first arguments are.
        features: what the programs have on which it is tried.
        of_primitives: whether ``check_primitive`` tries it too.
        costly: whether one try takes long, so that few are made.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        check: Callable[P, None],
        about: About,
        features: Features,
        of_primitives: bool,
        costly: bool,
    ) -> None:
        self.check = check
        self.about = about
        self.features = features
        self.of_primitives = of_primitives
        self.costly = costly
        self.signature: Signature = signature(check)
        update_wrapper(self, check)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Hold the arguments to the law. Raises LawBroken."""
        __tracebackhide__ = True
        self.says(*args, **kwargs)

    def says(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Hold the arguments to the law; gives whether it says anything about them.

        Raises LawBroken. It says nothing where it assumes what is not so, and where rounding
        decides what a program gives.
        """
        __tracebackhide__ = True
        try:
            self.check(*args, **kwargs)
        except LawBroken:
            raise
        except Unsaid:
            return False
        except Exception as error:
            if type(error).__module__.startswith("hypothesis"):
                raise
            given = self.signature.bind(*args, **kwargs).arguments
            if isinstance(error, Differs) and _is_chaotic(given):
                return False
            cause = error
        else:
            return True
        # Not in the handler: what the law says is all that there is to read.
        raise LawBroken(self, given, cause)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.__name__

    @property
    def equation(self) -> str:
        """What it says: the first paragraph of its docstring."""
        doc = self.__doc__ if self.__doc__ and self.__doc__ != type(self).__doc__ else self.name
        return doc.split("\n\n", maxsplit=1)[0].strip().removesuffix(".")

    def takes(self, name: str) -> bool:
        """Whether it has a parameter of this name, beside what it is about."""
        return name in list(self.signature.parameters)[self.about.count :]

    @property
    def required(self) -> tuple[str, ...]:
        """What it has to be given, beside what it is about."""
        kinds = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        rest = list(self.signature.parameters.values())[self.about.count :]
        return tuple([p.name for p in rest if p.default is Parameter.empty and p.kind not in kinds])

    def __repr__(self) -> str:
        return f"<law {self.name}: {self.equation}>"

    def __reduce__(self) -> str:
        # As functions are: by name, in its module.
        return self.__qualname__


def _is_chaotic(given: Mapping[str, object]) -> bool:
    """Whether rounding decides what a program gives: then its numbers say nothing.

    Such a program compares what is equal but for rounding.
    """
    seed = given.get("seed", 0)
    return isinstance(seed, int) and any(
        isinstance(value, Jaxpr) and is_chaotic(value, seed) for value in given.values()
    )


@overload
def law(check: Callable[P, None], /) -> Law[P]: ...
@overload
def law(
    *,
    about: About = About.PROGRAMS,
    features: Features = ANYTHING,
    of_primitives: bool = False,
    costly: bool = False,
) -> Callable[[Callable[P, None]], Law[P]]: ...


def law(
    check: Callable[P, None] | None = None,
    /,
    *,
    about: About = About.PROGRAMS,
    features: Features = ANYTHING,
    of_primitives: bool = False,
    costly: bool = False,
) -> Law[P] | Callable[[Callable[P, None]], Law[P]]:
    """Make a law of a function that raises where it does not hold.

    ::

        @law(features=SMOOTH)
        def printing_is_stable(jaxpr, seed):
            "str(f) = str(parse(str(f)))."
            assert str(parse(str(jaxpr))) == str(jaxpr), "another text"

    What it is about comes first, under any name; then, by name, what it wants of ``seed``,
    ``passes``, ``step`` and ``primitives``. Other parameters have defaults.

    Args:
        check: the function. Whatever it raises breaks the law; ``assume`` says that there is
            nothing to say.
        about: what its first arguments are.
        features: what the programs have on which it is tried.
        of_primitives: whether ``check_primitive`` tries it too.
        costly: whether one try takes long.

    Raises:
        BadArgument: it takes nothing that it could be about.
    """

    def made(check: Callable[P, None]) -> Law[P]:
        found: Law[P] = Law(check, about, features, of_primitives, costly)
        _check_subject(found.name, found.signature, about)
        return found

    return made if check is None else made(check)


def _check_subject(name: str, found: Signature, about: About) -> None:
    """Raise BadArgument unless the first parameters can be what a law is about."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    first = [p for p in found.parameters.values() if p.kind in positional][: about.count]
    if len(first) < about.count or any(p.name in GIVEN_BY_NAME for p in first):
        raise BadArgument(
            f"the law {name} takes no program"
            if about.count == 1
            else f"the law {name} does not take what it is about",
            expected=f"{about.value}, first; then any of {', '.join(GIVEN_BY_NAME)}",
            found=f"{name}{found}",
            remedy=f"`def {name}(jaxpr, seed): ...`" if about is About.PROGRAMS else None,
        )


def tried_law(given: object) -> Law[...]:
    """A law that can be tried on random programs. Raises BadArgument for what cannot."""
    if not isinstance(given, Law):
        raise BadArgument(
            "this is no law",
            expected="a function under `@effax.testing.law`, or the name of a law of the library",
            found=f"{given!r:.80}",
            remedy="write `@law` above the function" if callable(given) else None,
        )
    if given.about is About.GIVEN:
        raise BadArgument(
            f"the law {given.name} is not about random programs",
            expected=", ".join(a.value for a in About if a is not About.GIVEN),
            found=f"{given.name}{given.signature}",
            remedy="call it yourself, or make a law of a program that calls it",
        )
    unknown = [name for name in given.required if name not in GIVEN_BY_NAME]
    if unknown:
        raise BadArgument(
            f"the law {given.name} takes what nobody gives: {', '.join(unknown)}",
            expected="; ".join(f"{name}: {what}" for name, what in GIVEN_BY_NAME.items()),
            found=f"{given.name}{given.signature}",
            remedy="give it a default, or make it a constant of the module",
        )
    return given
