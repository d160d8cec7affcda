"""What a history says about a store so far, and the moments to ask laws at."""
