"""Run subjects, judge them, and hold the doors: plugin and command line."""
