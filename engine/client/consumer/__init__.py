"""A push consumer: where it begins, its queues, and where its offsets are kept."""
