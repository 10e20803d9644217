"""Command line of effax: see ``python -m effax --help``."""

import sys

from effax.show.command import main

if __name__ == "__main__":
    sys.exit(main())
