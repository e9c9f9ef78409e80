"""The pages of the console as values: each page has its JSON, and nothing is computed by a page."""
