"""Delayed messages: how they are stored, delivered, and how progress is kept."""
