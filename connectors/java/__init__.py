"""Java, and the jars of Delta that it runs."""
