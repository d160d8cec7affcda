"""Ports: what the engine needs from its host (files, time, locks, services, probes)."""
