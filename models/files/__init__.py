"""A store's files, decoded part by part; ``store_image`` puts them together."""
