"""What to ask: spaces, workloads, strategies, scenarios, mutants, recorded cases."""
