"""How the queues of a topic are divided among the clients of a group."""
