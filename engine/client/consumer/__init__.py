"""A consumer: where it begins, and how it tells how far it has come."""
