"""Which messages match a subscription: SQL92 expressions, and bloom filters."""
