"""Stores read record by record, however large they are: for people, and to repair."""
