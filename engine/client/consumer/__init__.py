"""A push consumer: its queues, where it begins in them, and where offsets are kept."""
