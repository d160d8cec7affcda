"""What ``crashmq list`` prints, one module per kind, each with its ``rows``."""
