"""RocketMQ's client, in the process of the broker or the harness."""
