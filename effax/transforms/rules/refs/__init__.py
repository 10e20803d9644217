"""The rules of references, one module a transformation."""
