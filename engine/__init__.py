"""A RocketMQ-style message store as plain blocking code against ports.

``engine.host`` holds the ports (disk, runtime, service, probe) and what implements them
outside a simulation; ``engine.store`` holds the store, a module a RocketMQ class.
Standard library only.
"""
