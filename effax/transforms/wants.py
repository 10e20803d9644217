"""What is to be done about the cotangent of each input of a program that is transposed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NonLinear:
    """An input that is given again; the program need not be linear in it."""


@dataclass(frozen=True)
class GradRef:
    """A linear input whose cotangent is added to a reference, which the new program takes."""


@dataclass(frozen=True)
class GradValue:
    """A linear input, an array, whose cotangent is a result of the new program."""


@dataclass(frozen=True)
class DontWant:
    """A linear input whose cotangent is not computed."""


@dataclass(frozen=True)
class Threaded:
    """A linear input, a reference, whose cotangent reference is in use outside of the program.

    It comes with the cotangent of the final contents, and is left with that of the initial ones.
    This is what a reference is to the body of a loop; ``GradRef`` takes the first as zero.
    """


Want = NonLinear | GradRef | GradValue | DontWant | Threaded
"""What is to be done about the cotangent of an input."""

Wants = tuple[Want, ...]
