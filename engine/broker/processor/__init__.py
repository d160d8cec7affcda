"""The broker's answers to its clients' requests."""
