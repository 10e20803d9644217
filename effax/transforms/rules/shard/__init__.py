"""Rules of ``shard_map``, one module for each transformation."""
