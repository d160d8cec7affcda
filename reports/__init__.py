"""What was learnt: rows of episodes, their aggregation in Spark, the report."""
