"""Rules of indexed reads and updates. An indexed part stays sparse when it is transposed."""
