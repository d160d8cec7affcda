"""Runs subjects and judges them; the pytest plugin and the command line."""
