"""The client's side, in process."""
