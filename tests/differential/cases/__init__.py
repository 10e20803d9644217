"""The cases, by subject. Each is a function of a namespace, ``jax`` or ``effax``, and its numpy."""
