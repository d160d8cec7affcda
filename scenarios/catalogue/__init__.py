"""What to ask: the named scenarios and what each needs."""
