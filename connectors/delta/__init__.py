"""Delta tables: the Spark session, their logs and change feeds, marked statements."""
