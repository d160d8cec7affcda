"""How far each group has consumed each queue, as the broker keeps it."""
