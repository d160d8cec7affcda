"""Which messages a subscription asks for: SQL92 expressions, and bloom filters."""
