"""Random Python functions, as source code, against finite differences."""
