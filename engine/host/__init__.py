"""What the engine asks of whoever hosts it: files, time, waiting, turns, marks."""
