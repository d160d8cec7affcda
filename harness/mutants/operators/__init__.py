"""Mutants made by machine: operators applied to the engine's own text."""
