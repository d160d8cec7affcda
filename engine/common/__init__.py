"""What brokers and clients share: text formats, and files that are replaced whole."""
