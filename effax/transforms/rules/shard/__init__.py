"""The rules of ``shard_map``, one module a transformation."""
