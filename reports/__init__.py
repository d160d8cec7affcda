"""Rows of episodes, their aggregation in Spark, and the report."""
