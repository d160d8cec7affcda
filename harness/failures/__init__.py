"""Failures as files, made as small as they go."""
