"""Pulls that wait at the broker for messages to come."""
