"""The explorer: one history of a store, all the crashes it could have had."""
