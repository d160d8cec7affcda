"""Delayed messages: how they are put, delivered, and how far that has come."""
