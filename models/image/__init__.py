"""A store's files, decoded part by part; ``models.store_image`` puts them together."""
