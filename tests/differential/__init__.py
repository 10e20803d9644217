"""The same programs through effax and through JAX, side by side."""
