"""What clients and brokers say to each other."""
