"""What ``crashmq list`` tells, a module a kind, each with its ``rows``."""
