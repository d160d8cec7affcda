"""How programs are made: spaces, strategies, seeded workloads."""
