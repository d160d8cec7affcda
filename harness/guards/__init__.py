"""What is seen to before anything is judged: asserts, Ctrl-C, files."""
