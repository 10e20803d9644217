"""The output of a pass as sections of a golden file."""

from __future__ import annotations

from typing import Any, Final

from effax.ir import Jaxpr, pretty
from effax.ir.errors import EffaxError
from tests.golden.case_files import Sections

GIVEN: Final = ("in_tangents", "tangents", "known_ins")
"""Fields of results that repeat an option."""


def programs_of(made: Any) -> dict[str, Jaxpr]:
    """Return the programs in the result of a pass, by field; the field is empty for a program."""
    if isinstance(made, Jaxpr):
        return {"": made}
    fields = {} if isinstance(made, str) else made._asdict()
    return {name: value for name, value in fields.items() if isinstance(value, Jaxpr)}


def sections_of(made: Any) -> Sections:
    """Return the result of a pass as text."""
    if isinstance(made, str):
        return (("out", made.strip("\n")),)
    programs = programs_of(made)
    only = len(programs) == 1
    sections = [
        ("out" if only else f"out {name}", pretty(program)) for name, program in programs.items()
    ]
    if not isinstance(made, Jaxpr):
        shown = [k for k in made._fields if k not in programs and k not in GIVEN]
        facts = [f"{name}: {getattr(made, name)}" for name in shown]
        sections += [("results", "\n".join(facts))] if facts else []
    return tuple(sections)


def sections_of_error(error: EffaxError) -> Sections:
    """Return the refusal of a pass as text."""
    return ((f"error {type(error).__name__}", str(error)),)
