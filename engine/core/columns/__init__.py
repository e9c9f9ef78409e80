"""Arrow columns: hashed, filtered, netted; and how loops over them are compiled."""
