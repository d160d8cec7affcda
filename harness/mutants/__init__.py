"""Plants bugs in the engine and measures how well the harness finds them."""
