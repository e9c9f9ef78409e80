"""`tidegate why`: the story of one firing, from its constituents to what came of it. No Spark."""
