"""Stores made again: queues and index from the log, and a log from what is whole."""
