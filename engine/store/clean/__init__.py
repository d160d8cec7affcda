"""What gives up data: expired files, deleted topics, a full disk."""
