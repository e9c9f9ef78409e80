"""Spark SQL texts, read without Spark."""
