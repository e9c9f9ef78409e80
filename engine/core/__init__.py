"""What flows between the stages, what the engine needs of the outside, and what all rooms share."""
