"""Load names of packages, and generate methods of dataclasses, on first use."""
