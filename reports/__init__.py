"""The rows of soaks, their aggregates (with or without Spark), and reports."""
