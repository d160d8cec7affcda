"""Planted bugs, one module for each group of parts; see ``scenarios.mutants``."""
