"""The topics of a broker and their configuration."""
