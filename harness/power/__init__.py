"""Power: how good this harness is at finding bugs, measured on planted ones."""
