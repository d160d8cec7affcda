"""How a client speaks with brokers."""
