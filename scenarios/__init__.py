"""What to try: spaces, workloads, strategies, scenarios, mutants, recorded cases."""
