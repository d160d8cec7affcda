"""Mutants made by machine: operators over the engine's own text."""
