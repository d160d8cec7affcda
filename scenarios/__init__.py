"""What to try: spaces, workloads, strategies, scenarios, recorded cases."""
