"""The broker around a message store: what its consumers have done, kept in files."""
