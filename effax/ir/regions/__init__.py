"""Regions, which declare how primitives run their subjaxprs: forms, checks, programs."""
