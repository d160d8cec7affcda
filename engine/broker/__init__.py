"""The broker around a message store: clients, pulls, offsets, filters, delays."""
