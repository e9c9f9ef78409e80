"""The event algebra: laws, normal form, transformation, static bound."""
