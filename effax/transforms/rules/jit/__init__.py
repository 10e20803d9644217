"""The rules of ``jit``, one module a transformation."""
