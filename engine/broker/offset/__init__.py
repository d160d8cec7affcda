"""The offsets of consumer groups, as the broker stores them."""
