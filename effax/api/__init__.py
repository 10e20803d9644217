"""Transformations of Python callables: each traces, composes passes, and runs the result."""
