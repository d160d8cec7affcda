"""What is known of a store's history, and when which law may be asked about it."""
