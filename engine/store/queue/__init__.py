"""ConsumeQueues: the units of each queue, and their extension files."""
