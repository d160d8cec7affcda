"""The explorer: tries every crash that one history could have had."""
