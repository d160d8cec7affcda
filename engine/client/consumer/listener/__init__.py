"""What a consumer's own code gets, and what it answers."""
