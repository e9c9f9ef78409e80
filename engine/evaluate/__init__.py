"""Detections -> firings: the parameter relation, identities, conditions."""
