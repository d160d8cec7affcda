"""The judge: it walks the moments of each step and asks the declared laws."""
