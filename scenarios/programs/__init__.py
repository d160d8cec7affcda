"""How programs are generated: ranges of ops, phrases, seeded workloads."""
