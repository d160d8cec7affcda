"""The simulated disk: what a crash may leave, and what an error does."""
