"""One judged run: driven, read back at its end, shown as text."""
