"""What the parts cost, each measured by a program of its own."""
