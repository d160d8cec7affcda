"""The offset stores of consumers: in a file of their own, or at the broker."""
