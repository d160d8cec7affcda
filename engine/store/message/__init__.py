"""Messages: their records, byte for byte, and how they are read."""
