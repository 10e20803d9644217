"""Rules of references, one module for each transformation."""
