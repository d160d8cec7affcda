"""The judge: a loop, and what it asks at which moment."""
