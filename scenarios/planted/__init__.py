"""Planted bugs, a module a group of the store's parts; see ``scenarios.mutants``."""
