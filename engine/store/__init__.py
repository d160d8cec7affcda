"""The store: Java ``store/ConsumeQueue`` is ``engine/store/consume_queue.py``."""
