"""No family ends the process: each over empty arrays, in a subprocess.

``python -m tests.sweep.groups`` runs the sweep over other dtypes and shapes.
"""

from __future__ import annotations

import pytest

from tests.sweep.cases import FAMILIES
from tests.sweep.groups import faults_of, groups_of


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_program_of_empty_arrays_ends_the_process(family: str) -> None:
    faults = list(faults_of(list(groups_of(family, ("float32",), ((0,),)))))
    assert not [fault for fault in faults if "ends the process" in fault]
