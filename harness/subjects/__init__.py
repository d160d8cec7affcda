"""Systems under test behind one interface: our engine, and stores of others."""
