"""Rules of ``jit``, one module for each transformation; ``remat`` shares most of them."""
