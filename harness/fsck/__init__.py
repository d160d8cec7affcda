"""The laws of the files on any store directory, read only."""
