"""docs/missing-names.md is what the installed JAX has and effax lacks."""

from __future__ import annotations

from difflib import unified_diff

import pytest

from tests import missing_names


@pytest.mark.jax
@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    jax = pytest.importorskip("jax")
    listed = missing_names.PAGE.read_text("utf-8")
    if f"of jax {jax.__version__} " not in listed:
        pytest.skip("the page is that of another version of jax")
    lines = unified_diff(listed.split("\n"), missing_names.page().split("\n"), n=0)
    shown = "\n".join([*lines][:40])
    assert not shown, f"names came or went: `{missing_names.COMMAND}`\n{shown}"
