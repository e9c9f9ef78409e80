"""The history of the store's schema, run by `engine.store.schema`."""
