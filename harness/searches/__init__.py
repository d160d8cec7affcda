"""Many runs: soaks, the gate, Hypothesis machines."""
