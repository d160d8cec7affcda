"""The laws, by id prefix; importing this package declares them all."""
