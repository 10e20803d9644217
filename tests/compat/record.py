"""Store what the programs print on JAX: ``python -m tests.compat.record PYTHON [name ...]``.

``PYTHON`` runs in an environment with the libraries of ``requirements.txt`` and with JAX::

    python3.13 -m venv out/jax
    out/jax/bin/pip install --no-deps -r tests/compat/requirements.txt jax==0.12.0.1
    python -m tests.compat.record out/jax/bin/python
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.compat.programs import LIBRARIES, SCRIPTS


def main(args: Sequence[str]) -> None:
    python, *names = args
    for program in (*LIBRARIES, *SCRIPTS):
        if names and program.name not in names:
            continue
        run = program.run(python)
        if run.returncode:
            raise RuntimeError(f"{program.name} fails on JAX:\n{run.stderr}")
        program.stored.write_text(run.stdout, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
