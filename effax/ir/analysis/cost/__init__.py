"""The cost of a program: work by primitive, source line and subjaxpr, and peak live memory."""
