"""Command line of the launcher: see ``python -m effax.launch --help``."""

import sys

from effax.launch.command import main

if __name__ == "__main__":
    sys.exit(main())
