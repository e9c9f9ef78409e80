"""The sentences of every rule of the examples. `python -m tests.explain.examples` writes them."""

from __future__ import annotations

from pathlib import Path

from tidegate import rules
from tidegate.engine.explain.build import build
from tidegate.rules.checks.gaps import all_features

FOLDER = Path(__file__).parents[2] / "rules" / "examples"
TEXTS = Path(__file__).with_name("examples.txt")


def said() -> str:
    """A paragraph a rule: its rulebook, name, context and key, its expression, then sentences."""
    paragraphs = []
    for file in sorted(FOLDER.glob("*/*.yaml")):
        if not file.name.endswith(".test.yaml"):
            for rule in build(rules.load(file, features=all_features())).rules:
                per = f", per {', '.join(rule.key_names)}" if rule.key_names else ""
                head = f"{file.stem}: {rule.name} ({rule.context}{per})"
                lines = (head, rule.expression, *rule.sentences)
                paragraphs.append("\n    ".join(lines) + "\n")
    return "\n".join(paragraphs)


if __name__ == "__main__":
    TEXTS.write_text(said())
