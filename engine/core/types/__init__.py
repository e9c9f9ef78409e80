"""Types of columns: of Spark, of Arrow, of the fields of signals."""
