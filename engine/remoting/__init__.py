"""The requests and answers between clients and brokers."""
