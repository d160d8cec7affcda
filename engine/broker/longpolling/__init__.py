"""Long polling: pulls that the broker holds until messages come."""
