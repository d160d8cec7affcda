"""Which messages of a topic a group has asked for, and how a pull finds them."""
