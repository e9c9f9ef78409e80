"""Values of keys in the words of a command."""


def key_text(value: object) -> str:
    """A value of a key, as YAML has it.

    Example: `disabled_for: [true]` is `--key open=true`.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
