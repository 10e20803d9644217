"""The README's examples run and print the output in their comments."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

README = Path(__file__).parents[2] / "README.md"


def test_the_examples_print_the_promised_output() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    code = "".join(blocks)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    printed = out.getvalue()
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert promised
    for text in promised:
        if text.endswith("..."):
            assert text.removesuffix("...").strip() in printed
        elif text.startswith("Ref("):
            assert text in printed
    assert "scatter" in printed
