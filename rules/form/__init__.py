"""What a rulebook may say: from YAML to the model."""
