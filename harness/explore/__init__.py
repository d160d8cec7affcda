"""The explorer: tries every crash that one history can have."""
