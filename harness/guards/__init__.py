"""What is checked before anything is judged: asserts, Ctrl-C, files."""
