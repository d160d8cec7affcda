"""Files of one size in a row: what the log, queues and their extensions lie in."""
