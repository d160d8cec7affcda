"""What brokers and clients share: text formats, and files replaced as a whole."""
