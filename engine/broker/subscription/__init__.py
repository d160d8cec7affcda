"""The consumer groups of a broker and their configuration."""
