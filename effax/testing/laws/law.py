"""Laws as values: a check, what it is about, and on which programs it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import cached_property, update_wrapper
from inspect import Parameter, Signature, signature
from numbers import Integral
from typing import Final, Generic, ParamSpec, TypeGuard, get_type_hints, overload

from returns.result import Result

from effax.ir.axes import Axis
from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.passes.pipeline import AnyPass, Fixpoint, Pass, Pipeline, When, not_a_pass
from effax.testing.generate.features import ANYTHING, Features, as_features
from effax.testing.generate.values import Differs, is_chaotic
from effax.testing.laws.pass_set import Passes
from effax.testing.report.report import LawBroken

P = ParamSpec("P")


class About(Enum):
    """What a law is about: the first arguments that it takes."""

    PROGRAMS = "a program"
    REDUNDANT = "a program in which much is computed twice, overwritten, or undone"
    PAIRS = "two programs, of which the second takes the results of the first, then its references"
    LINEAR = "a program, and in which of its inputs it is linear"
    OPEN = "a program with collectives along an axis, and the axis"
    OPEN_LINEAR = "an open program, in which inputs it is linear, and the axis"
    EXPLICIT = "what its caller has: nothing that is random"

    @property
    def count(self) -> int:
        """How many arguments are drawn."""
        return len(self.classes)

    @property
    def classes(self) -> tuple[tuple[type, str], ...]:
        """Of which class each of them is, and what that is for people."""
        a_program = (Jaxpr, "a program, a `Jaxpr`")
        inputs = (Sequence, "for each input whether the program is linear in it")
        axis = (Axis, "the axis, an `Axis`")
        return {
            About.EXPLICIT: (),
            About.PAIRS: (a_program, a_program),
            About.LINEAR: (a_program, inputs),
            About.OPEN: (a_program, axis),
            About.OPEN_LINEAR: (a_program, inputs, axis),
        }.get(self, (a_program,))


LAW_PARAMETERS: Final = {
    "seed": "an integer, from which inputs are drawn",
    "passes": "the passes that are held to the law, a `Passes`",
    "step": "the pass that is held to it, a `Pass` or a composition",
    "primitives": "the primitives that a text may have, a `Registry`",
}
"""What a law may take after what it is about, whether it has a default or not."""

Kinds = type | tuple[type, ...]
_STEPS: Final = (Pass, Pipeline, When, Fixpoint)
_NAMED: Final[dict[str, Kinds]] = {
    "seed": Integral,
    "passes": Passes,
    "step": _STEPS,
    "primitives": Mapping,
}


class Skipped(Exception):
    """A law has nothing to say about what it was given."""


def assume(condition: object) -> None:
    """Leave a law that says nothing where a condition does not hold; that is no run of it.

    Args:
        condition: anything with a truth.
    """
    if not condition:
        raise Skipped


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
        """Hold the arguments to the law.

        Raises:
            LawBroken: it does not hold.
            BadArgument: the arguments are not what it is about, or it gives a result.
        """
        __tracebackhide__ = True
        self.applies(*args, **kwargs)

    def applies(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Hold the arguments to the law; gives whether it says anything about them.

        Raises LawBroken, and BadArgument for what it is not about. It says nothing where it
        assumes what is not so, and where rounding decides what a program gives.
        """
        __tracebackhide__ = True
        self._check_given(self.signature.bind(*args, **kwargs).arguments)
        try:
            result: object = self.check(*args, **kwargs)
        except Skipped:
            return False
        except Exception as error:
            if type(error).__module__.startswith("hypothesis"):
                raise
            given = self.signature.bind(*args, **kwargs).arguments
            # What a law that is called raises is about this one, whose arguments are known.
            root = error.root if isinstance(error, LawBroken) else error
            if isinstance(root, Differs) and _is_chaotic(given):
                return False
            cause = error
        else:
            _check_silent(self.name, result)
            return True
        # Not in the handler: what the law says is all that there is to read.
        raise LawBroken(self, given, cause)

    @cached_property
    def _classes(self) -> dict[str, tuple[Kinds, str]]:
        """By parameter, of what class its argument is to be, and what that is for people.

        What a law is about that nobody draws is known from its annotations.
        """
        if self.about is not About.EXPLICIT:
            names = list(self.signature.parameters)[: self.about.count]
            told: dict[str, tuple[Kinds, str]] = dict(zip(names, self.about.classes, strict=True))
        else:
            told = {
                name: (hint, f"an instance of `{hint.__name__}`")
                for name, hint in _hints(self.check).items()
                if isinstance(hint, type) and name not in ("return", "seed")
            }
        named = {name: (kind, LAW_PARAMETERS[name]) for name, kind in _NAMED.items()}
        return {**{name: x for name, x in named.items() if self.takes(name)}, **told}

    def _check_given(self, given: Mapping[str, object]) -> None:
        """Raise BadArgument for an argument that the law cannot be about: the law is not at fault.

        What has None for a default may be None.
        """
        for name, (kind, what) in self._classes.items():
            if name not in given:
                continue
            value = given[name]
            if isinstance(value, kind) or value is self.signature.parameters[name].default:
                continue
            raise BadArgument(
                f"`{name}` of the law {self.name} is not what it is to be",
                expected=what,
                found=f"{value!r:.80}",
                remedy=_nearest(self, kind, value),
            )

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


def _hints(check: Callable[..., object]) -> dict[str, object]:
    """The annotations of a function, where all of them can be looked up."""
    try:
        return dict(get_type_hints(check))
    except (NameError, AttributeError, TypeError):
        return {}


def _nearest(law: Law[...], kind: Kinds, found: object) -> str | None:
    """What to do about an argument of a law that is of another class."""
    if isinstance(found, (list, tuple)) and any(isinstance(x, kind) for x in found):
        return f"one at a time: `for x in ...: {law.name}(x)`"
    if isinstance(found, AnyPass) and law.about is not About.EXPLICIT and not law.takes("step"):
        return "hold a pass to what it claims: `check_pass(...)`"
    if kind == _STEPS:
        return not_a_pass(found).remedy
    if isinstance(found, Result):
        return "`unwrap(...)` gives the program of a `Result`"
    inside: object = getattr(found, "jaxpr", None)
    if kind is Jaxpr:
        traced = "trace a function: `effax.make_jaxpr(f)(*args).jaxpr`"
        return "its program is `.jaxpr`" if isinstance(inside, Jaxpr) else traced
    return None


def _check_silent(name: str, result: object) -> None:
    """Raise BadArgument for a law that says by its result whether it holds: nobody would see it."""
    if result is not None:
        raise BadArgument(
            f"the law {name} gives a result",
            expected="None: a law raises where it does not hold",
            found=f"{result!r:.80}",
            remedy="`assert` what is to be so; where there is nothing to say, `assume(...)`",
        )


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

    The result of the function is None: a verdict that is returned is an error when it is tried.

    Raises:
        BadArgument: it takes nothing that it could be about, or it is no function; ``about`` or
            ``features`` are not what they are to be.
    """
    kind: object = about
    if not isinstance(kind, About):
        raise BadArgument(
            "what a law is about is not known",
            expected=", ".join(map(str, About)),
            found=f"{kind!r:.80}",
            remedy=_about_like(kind),
        )
    features = as_features(features)

    def made(check: Callable[P, None]) -> Law[P]:
        given: object = check
        if isinstance(given, Law) or not callable(given):
            raise BadArgument(
                "a law is made of a function",
                expected="a function that takes what the law is about, and raises",
                found=f"{given!r:.80}",
                remedy="it is a law already" if isinstance(given, Law) else None,
            )
        found: Law[P] = Law(check, about, features, of_primitives, costly)
        _check_subject(found.name, found.signature, about)
        return found

    return made if check is None else made(check)


def _about_like(found: object) -> str | None:
    names = [a.name for a in About]
    like = get_close_matches(found.rpartition(".")[2].upper(), names, 1) if _is_text(found) else []
    return f"did you mean `About.{like[0]}`?" if like else None


def _is_text(found: object) -> TypeGuard[str]:
    return isinstance(found, str)


def _check_subject(name: str, found: Signature, about: About) -> None:
    """Raise BadArgument unless the first parameters can be what a law is about."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    first = [p for p in found.parameters.values() if p.kind in positional][: about.count]
    if len(first) < about.count or any(p.name in LAW_PARAMETERS for p in first):
        raise BadArgument(
            f"the law {name} takes no program"
            if about.count == 1
            else f"the law {name} does not take what it is about",
            expected=f"{about.value}, first; then any of {', '.join(LAW_PARAMETERS)}",
            found=f"{name}{found}",
            remedy=f"`def {name}(jaxpr, seed): ...`" if about is About.PROGRAMS else None,
        )


def as_law(given: object) -> Law[...]:
    """A law that can be tried on random programs. Raises BadArgument for what cannot."""
    if not isinstance(given, Law):
        raise BadArgument(
            "this is no law",
            expected="a function under `@effax.testing.law`, or the name of a law of the library",
            found=f"{given!r:.80}",
            remedy="write `@law` above the function" if callable(given) else None,
        )
    if given.about is About.EXPLICIT:
        raise BadArgument(
            f"the law {given.name} is not about random programs",
            expected=", ".join(a.value for a in About if a is not About.EXPLICIT),
            found=f"{given.name}{given.signature}",
            remedy="call it yourself, or make a law of a program that calls it",
        )
    unknown = [name for name in given.required if name not in LAW_PARAMETERS]
    if unknown:
        raise BadArgument(
            f"the law {given.name} takes what nobody gives: {', '.join(unknown)}",
            expected="; ".join(f"{name}: {what}" for name, what in LAW_PARAMETERS.items()),
            found=f"{given.name}{given.signature}",
            remedy="give it a default, or make it a constant of the module",
        )
    return given
