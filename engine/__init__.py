"""The engine: capture, detect, evaluate, act, and the store they commit to."""
