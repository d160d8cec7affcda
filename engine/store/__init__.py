"""The store, one module a class: ``store/ConsumeQueue`` is ``consume_queue.py``."""
