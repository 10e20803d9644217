"""Cases by subject: functions of a namespace, ``jax`` or ``effax``, and its numpy."""
