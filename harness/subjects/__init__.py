"""Systems under test behind one port: our engine, and later others."""
