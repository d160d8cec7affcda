"""crashmq: what a message store promises of its data, put to the test.

``engine`` is the store, ``models`` what is right, ``scenarios`` what to ask,
``harness`` runs and judges, ``reports`` tells what was learnt.
"""
