"""ConsumeQueues: the index of each queue over the log."""
