"""Delta tables: the Spark session, table logs and change feeds, the SQL gate, marked statements."""
