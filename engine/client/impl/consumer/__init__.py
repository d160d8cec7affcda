"""How a push consumer works inside: rebalance, pull loop, consumption."""
