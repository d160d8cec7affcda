"""Activities in simulation, and the schedules that choose which one runs."""
