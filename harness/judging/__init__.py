"""The judge, and what it asks of each kind of op."""
