"""Scenarios: the programs to try, how they are generated, and recorded cases."""
