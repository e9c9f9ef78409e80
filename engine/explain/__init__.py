"""What a rulebook is, in sentences and pictures. No Spark, and nothing runs."""
