"""Filters by SQL92 expressions: registration, bit maps in dispatch, pulls."""
