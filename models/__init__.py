"""The ops that a program may hold, and the laws that judge what came of them."""
