"""Libraries and scripts that say ``import jax``, unmodified, on effax: ``make compat``."""
