"""Passes against golden files: the output as text, and that it is right.

``pytest tests/golden --update-golden`` rewrites the output in the files. Every output is also
checked and evaluated, so a rewritten file cannot be silently wrong.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from effax.ir import check, parse, pretty, references
from effax.ir.errors import EffaxError
from tests.golden.case_files import Case, Sections, read_cases, write_cases
from tests.golden.results import programs_of, sections_of, sections_of_error
from tests.golden.subjects import REFERENCES, SUBJECTS

FOLDER = Path(__file__).parent
CASES = [
    pytest.param(path, case, id=f"{path.parent.name}-{case.name}")
    for path in sorted(FOLDER.glob("*/*.jaxpr"))
    for case in read_cases(path)
]


def output_of(path: Path, case: Case) -> Sections:
    """Run the pass; the result is checked, and evaluated on deterministic inputs."""
    subject, options = SUBJECTS[path.parent.name], case.keywords()
    jaxpr = check(parse(case.program, references=REFERENCES)).unwrap()
    try:
        made = subject.transform(jaxpr, **options)
    except EffaxError as error:
        return sections_of_error(error)
    for program in programs_of(made).values():
        check(program).unwrap()
        assert parse(pretty(program), references=references(program)) == program
    subject.validate(jaxpr, options, made)
    return sections_of(made)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "case"), CASES)
def test_pass_produces_the_golden_output(
    path: Path, case: Case, request: pytest.FixtureRequest
) -> None:
    found = output_of(path, case)
    if request.config.getoption("--update-golden"):
        cases = read_cases(path)
        write_cases(path, [replace(c, expected=found) if c.name == case.name else c for c in cases])
        return
    assert str(replace(case, expected=found)) == str(case)


def test_every_pass_has_twelve_cases_with_unique_names() -> None:
    for name in SUBJECTS:
        paths = (FOLDER / name).glob("*.jaxpr")
        names = [case.name for path in paths for case in read_cases(path)]
        assert len(set(names)) == len(names) >= 12, name
