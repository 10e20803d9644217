"""Rules of ``while``, one module for each transformation."""
