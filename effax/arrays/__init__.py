"""The object model of the front door: arrays, references, indexing, operators, binding."""
