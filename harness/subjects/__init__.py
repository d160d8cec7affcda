"""Systems under test with one interface: our engine, and later others."""
