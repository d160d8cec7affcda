"""Messages: their records, byte for byte, and reading them from queues."""
