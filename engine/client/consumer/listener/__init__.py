"""Listeners: the user's code that consumes messages, and its answers."""
