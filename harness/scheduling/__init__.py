"""Who runs on: activities in simulation, and the schedules that choose among them."""
