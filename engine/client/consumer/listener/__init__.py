"""Listeners: the user's code that consumes messages, and the results it returns."""
