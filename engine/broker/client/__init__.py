"""The clients of a broker: members of groups, and locks of queues."""
