"""Comparison of effax with JAX on the same programs."""
