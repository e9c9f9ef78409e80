"""What the demo shows: a heading for each part, the rulebook, what fired and why, the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from tidegate.engine.cli.demo.writer import Step


class Screen:
    """Prints to stdout, in colour where that is a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)

    def part(self, title: str, text: str) -> None:
        """Begins a part of the demo."""
        self.console.print()
        self.console.print(Rule(f"[bold]{title}[/bold]", align="left"))
        self.console.print(text)

    def rulebook(self, file: Path) -> None:
        """The rulebook as it stands in the file."""
        text = file.read_text(encoding="utf-8").rstrip()
        self.console.print(Syntax(text, "yaml", background_color="default", word_wrap=True))

    def step(self, number: int, step: Step) -> None:
        """What the other process is about to commit."""
        self.console.print()
        self.console.print(f"[bold cyan]commit {number}[/bold cyan]  {step.note}")
        self.console.print(Text(step.sql, style="cyan"), soft_wrap=True)

    def firing(self, firing: Mapping[str, Any]) -> None:
        """One firing: its rule, key, the rows it stands on, and what became of its action."""
        key = ", ".join(f"{name} {value}" for name, value in firing["key"].items())
        failed = firing["condition"] == "failed"
        verb = "was detected, its condition failed" if failed else "fired"
        style = "yellow" if failed else "bold green"
        line = Text(f"  {firing['rule']} {verb}", style=style)
        line.append(f" for {key}" if key else "")
        self.console.print(line)
        for row in firing["constituents"]:
            fields = {k: v for k, v in row.items() if k not in ("event", "time") and v is not None}
            told = ", ".join(f"{k} {_value(v)}" for k, v in fields.items())
            self.console.print(Text(f"    {row['event']}: {told}"), soft_wrap=True)
        for entry in firing["entries"]:
            self.console.print(f"    action {entry['number']}: {entry['state']}", style="dim")

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """The contents of a Delta table."""
        made = Table(title=title, title_justify="left", title_style="bold", show_edge=False)
        for column in columns:
            made.add_column(column)
        for row in rows:
            made.add_row(*(_value(cell) for cell in row))
        self.console.print()
        self.console.print(made)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{k} {_value(v)}" for k, v in value.items()) + ")"
    return str(value)
