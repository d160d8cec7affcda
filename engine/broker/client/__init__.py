"""The clients of a broker: who consumes for which group, and who holds which queue."""
