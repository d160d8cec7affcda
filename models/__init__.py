"""The ops that a program may contain, and the laws that judge their results."""
