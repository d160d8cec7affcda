"""The named scenarios, and the capabilities that each needs."""
