"""Laws as values: a check, the kind of its subject, and the programs on which it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import cached_property, update_wrapper
from inspect import Parameter, Signature, signature
from numbers import Integral
from typing import Final, Generic, ParamSpec, get_type_hints, overload

from returns.result import Result

from effax.ir.axes import Axis
from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.passes.pipeline import AnyPass, Fixpoint, Pass, Pipeline, When, not_a_pass
from effax.testing.generate.features import ANYTHING, Features, as_features
from effax.testing.generate.values import Differs, is_chaotic
from effax.testing.laws.transformations import Passes
from effax.testing.report.report import Inconclusive, LawBroken

P = ParamSpec("P")


class About(Enum):
    """The subject of a law: its first arguments."""

    PROGRAMS = "a program"
    REDUNDANT = "a program with repeated, overwritten and undone computations"
    PAIRS = "two programs; the second takes the results of the first, then its references"
    LINEAR = "a program, and the mask of the inputs in which it is linear"
    OPEN = "a program with collectives along an axis, and the axis"
    OPEN_LINEAR = "an open program, the mask of its linear inputs, and the axis"
    EXPLICIT = "arguments of the caller: nothing is generated"

    @property
    def count(self) -> int:
        """Return the number of arguments in the subject."""
        return len(self.classes)

    @property
    def classes(self) -> tuple[tuple[type, str], ...]:
        """Return the class of each argument, with a description."""
        a_program = (Jaxpr, "a program, a `Jaxpr`")
        inputs = (Sequence, "a mask: for each input whether the program is linear in it")
        axis = (Axis, "the axis, an `Axis`")
        return {
            About.EXPLICIT: (),
            About.PAIRS: (a_program, a_program),
            About.LINEAR: (a_program, inputs),
            About.OPEN: (a_program, axis),
            About.OPEN_LINEAR: (a_program, inputs, axis),
        }.get(self, (a_program,))


LAW_PARAMETERS: Final = {
    "seed": "an integer, the seed of the inputs",
    "passes": "the passes to check, a `Passes`",
    "step": "the pass to check, a `Pass` or a composition",
    "primitives": "the primitives that a text may have, a `Registry`",
}
"""The parameters that a law may have after its subject, with or without a default."""

Kinds = type | tuple[type, ...]
_STEPS: Final = (Pass, Pipeline, When, Fixpoint)
_NAMED: Final[dict[str, Kinds]] = {
    "seed": Integral,
    "passes": Passes,
    "step": _STEPS,
    "primitives": Mapping,
}


class Skipped(Exception):
    """A law does not apply to its arguments."""


def assume(condition: object) -> None:
    """Skip the arguments of a law if a condition is false: they do not count as a try.

    Args:
        condition: anything with a truth value.
    """
    if not condition:
        raise Skipped


class Law(Generic[P]):
    """A law: a function that raises where it does not hold. Its docstring is the equation.

    A call raises ``LawBroken`` for any error of the function, with the arguments.

    Attributes:
        check: the function.
        about: the kind of its subject.
        features: the features of the programs on which it is tried.
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
        """Check the law for these arguments.

        Raises:
            LawBroken: it does not hold.
            Inconclusive: nothing tests it, as a rule that applies to no program.
            BadArgument: the arguments are of the wrong type, or the function returns a result.
        """
        __tracebackhide__ = True
        self.applies(*args, **kwargs)

    def applies(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Check the law for these arguments; return whether it applies to them.

        It does not where an assumption fails, or where rounding decides the results of a program.
        Raises LawBroken, and BadArgument for arguments of the wrong type.
        """
        __tracebackhide__ = True
        arguments = self.signature.bind(*args, **kwargs).arguments
        self._check_arguments(arguments)
        try:
            result: object = self.check(*args, **kwargs)
        except Skipped:
            return False
        except Exception as error:
            if type(error).__module__.startswith("hypothesis"):
                raise
            # A broken law that this one calls is reported as this one, with these arguments.
            root = error.root if isinstance(error, LawBroken) else error
            if isinstance(error, Inconclusive) and self.about is About.EXPLICIT:
                raise
            if isinstance(root, Differs) and _is_chaotic(arguments):
                return False
            cause = error
        else:
            _check_no_result(self.name, result)
            return True
        # Raised outside of the handler, so that no other traceback precedes the report.
        raise LawBroken(self, arguments, cause)

    @cached_property
    def _classes(self) -> dict[str, tuple[Kinds, str]]:
        """Return, for each parameter, the class of its arguments and a description.

        Without a generated subject, the classes are those of the annotations.
        """
        if self.about is not About.EXPLICIT:
            names = list(self.signature.parameters)[: self.about.count]
            subject: dict[str, tuple[Kinds, str]] = dict(
                zip(names, self.about.classes, strict=True)
            )
        else:
            subject = {
                name: (hint, f"an instance of `{hint.__name__}`")
                for name, hint in _hints(self.check).items()
                if isinstance(hint, type) and name not in ("return", "seed")
            }
        named = {name: (kind, LAW_PARAMETERS[name]) for name, kind in _NAMED.items()}
        return {**{name: x for name, x in named.items() if self.takes(name)}, **subject}

    def _check_arguments(self, given: Mapping[str, object]) -> None:
        """Raise BadArgument for an argument of the wrong type that is not the default."""
        for name, (kind, what) in self._classes.items():
            if name not in given:
                continue
            value = given[name]
            if isinstance(value, kind) or value is self.signature.parameters[name].default:
                continue
            raise BadArgument(
                f"`{name}` of the law {self.name} is of the wrong type",
                expected=what,
                found=f"{value!r:.80}",
                remedy=_nearest(self, kind, value),
            )

    @property
    def name(self) -> str:
        """Return the name of the function."""
        return self.__name__

    @property
    def equation(self) -> str:
        """Return the first paragraph of the docstring."""
        doc = self.__doc__ if self.__doc__ and self.__doc__ != type(self).__doc__ else self.name
        return doc.split("\n\n", maxsplit=1)[0].strip().removesuffix(".")

    def takes(self, name: str) -> bool:
        """Return whether it has a parameter of this name, after its subject."""
        return name in list(self.signature.parameters)[self.about.count :]

    @property
    def required(self) -> tuple[str, ...]:
        """Return the parameters without a default, after the subject."""
        kinds = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        rest = list(self.signature.parameters.values())[self.about.count :]
        return tuple([p.name for p in rest if p.default is Parameter.empty and p.kind not in kinds])

    def __repr__(self) -> str:
        return f"<law {self.name}: {self.equation}>"

    def __reduce__(self) -> str:
        # Like a function, by its name in its module.
        return self.__qualname__


def _hints(check: Callable[..., object]) -> dict[str, object]:
    """Return the annotations of a function, or none if one cannot be resolved."""
    try:
        return dict(get_type_hints(check))
    except (NameError, AttributeError, TypeError):
        return {}


def _nearest(law: Law[...], kind: Kinds, found: object) -> str | None:
    """Return a remedy for an argument of the wrong type."""
    if isinstance(found, (list, tuple)) and any(isinstance(x, kind) for x in found):
        return f"one at a time: `for x in ...: {law.name}(x)`"
    if isinstance(found, AnyPass) and law.about is not About.EXPLICIT and not law.takes("step"):
        return "check a pass: `check_pass(...)`"
    if kind == _STEPS:
        return not_a_pass(found).remedy
    if isinstance(found, Result):
        return "`unwrap(...)` returns the program of a `Result`"
    inside: object = getattr(found, "jaxpr", None)
    if kind is Jaxpr:
        traced = "trace a function: `effax.make_jaxpr(f)(*args).jaxpr`"
        return "its program is `.jaxpr`" if isinstance(inside, Jaxpr) else traced
    return None


def _check_no_result(name: str, result: object) -> None:
    """Raise BadArgument for a law that returns a verdict, which would be ignored."""
    if result is not None:
        raise BadArgument(
            f"the law {name} returns a result",
            expected="None: a law raises where it does not hold",
            found=f"{result!r:.80}",
            remedy="`assert` the condition; `assume(...)` where the law does not apply",
        )


def _is_chaotic(given: Mapping[str, object]) -> bool:
    """Return whether rounding decides the results of a program, so that they prove nothing.

    Such a program compares values that are equal up to rounding.
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
    """Declare a law by a function that raises where it does not hold, and returns None.

    ::

        @law(features=SMOOTH)
        def printing_is_stable(jaxpr, seed):
            "str(f) = str(parse(str(f)))."
            assert str(parse(str(jaxpr))) == str(jaxpr), "another text"

    The first parameters are its subject, under any name; then, by name, any of ``seed``,
    ``passes``, ``step`` and ``primitives``. Other parameters have defaults.

    Args:
        check: the function. Any error breaks the law; ``assume`` skips arguments.
        about: the kind of the subject.
        features: the features of the programs on which it is tried.
        of_primitives: whether ``check_primitive`` tries it too.
        costly: whether one try takes long.

    Raises:
        BadArgument: ``check`` is no function or has no parameter for the subject; ``about`` or
            ``features`` are of the wrong type.
    """
    kind: object = about
    if not isinstance(kind, About):
        raise BadArgument(
            "the subject of a law is unknown",
            expected=", ".join(map(str, About)),
            found=f"{kind!r:.80}",
            remedy=_about_like(kind),
        )
    features = as_features(features)

    def made(check: Callable[P, None]) -> Law[P]:
        given: object = check
        if isinstance(given, Law) or not callable(given):
            raise BadArgument(
                "a law is declared by a function",
                expected="a function that takes the subject of the law, and raises",
                found=f"{given!r:.80}",
                remedy="it is already a law" if isinstance(given, Law) else None,
            )
        found: Law[P] = Law(check, about, features, of_primitives, costly)
        _check_subject(found.name, found.signature, about)
        return found

    return made if check is None else made(check)


def _about_like(found: object) -> str | None:
    names = [a.name for a in About]
    if not isinstance(found, str):
        return None
    like = get_close_matches(found.rpartition(".")[2].upper(), names, 1)
    return f"did you mean `About.{like[0]}`?" if like else None


def _check_subject(name: str, found: Signature, about: About) -> None:
    """Raise BadArgument unless the first parameters can be the subject."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    first = [p for p in found.parameters.values() if p.kind in positional][: about.count]
    if len(first) < about.count or any(p.name in LAW_PARAMETERS for p in first):
        raise BadArgument(
            f"the law {name} takes no program"
            if about.count == 1
            else f"the law {name} does not take its subject",
            expected=f"{about.value}, first; then any of {', '.join(LAW_PARAMETERS)}",
            found=f"{name}{found}",
            remedy=f"`def {name}(jaxpr, seed): ...`" if about is About.PROGRAMS else None,
        )


def as_law(given: object) -> Law[...]:
    """Return a law that can be tried on random programs. Raises BadArgument for others."""
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
            f"the law {given.name} has unknown parameters: {', '.join(unknown)}",
            expected="; ".join(f"{name}: {what}" for name, what in LAW_PARAMETERS.items()),
            found=f"{given.name}{given.signature}",
            remedy="set a default, or use a constant of the module",
        )
    return given
