"""The life of a bucket."""
