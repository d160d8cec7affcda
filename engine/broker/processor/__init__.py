"""The broker's answers to requests of its clients."""
