"""The figures tidegate is judged by: ratios against a peer in the same run, never bare times."""
