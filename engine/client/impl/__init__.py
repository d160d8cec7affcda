"""The parts of a client: its calls to brokers, and its consumer."""
