"""Rules of calls that bring rules of their own, one module a transformation."""
