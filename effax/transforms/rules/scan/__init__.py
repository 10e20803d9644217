"""Rules of ``scan``, one module for each transformation."""
