"""The pages that are made of the code: settings, commands, the cookbook."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tidegate.engine.cli.main import main
from tidegate.rules.model import Settings

ROOT = Path(__file__).parents[2]
COOKBOOK = Path("rules/examples/cookbook")
_ROW = re.compile(r"^\| `?(\w+)`? \| ([^|]*) \| *([^|]*?) *\|$", re.MULTILINE)


def settings() -> str:
    """Every limit with its default and its least value, and what the schema says of it."""
    schema = json.loads((ROOT / "rules" / "schema.json").read_text(encoding="utf-8"))
    forms = schema["properties"]["settings"]["properties"]
    lines = []
    for name in Settings.__slots__:
        default = getattr(Settings(), name)
        form = forms[name]
        if words := form.get("enum"):
            shown, least = f"`{default}`", " or ".join(f"`{word}`" for word in words)
        elif name == "state_path":
            shown, least = "beside SQLite", "`store` or a path or a URI"
        else:
            shown, least = "0 or 200" if default is None else f"{default:,}", form["minimum"]
        lines.append(f"| `{name}` | {shown} | {least} | {form['description']} |")
    return "\n".join(
        (
            "# Settings\n",
            "Every limit has a name with its unit in it, a default and a consequence. A rulebook"
            " sets it under `settings:`, and `--set NAME=VALUE` overrides that for one run:\n",
            "    tidegate run bank.yaml --set bucket_rows_max=50000\n",
            "| setting | default | least | what it counts, and what happens at it |",
            "|---|---|---|---|",
            *lines,
            "",
        )
    )


def commands() -> str:
    """Every command with what it says of itself and its options."""
    parts = [
        "# Commands\n",
        "What `tidegate COMMAND --help` says, on one page. Exit codes and the shapes of `--json`"
        " are in the [reference](language.md#3-the-command-line).\n",
    ]
    for name, command in _commands("tidegate", main):
        context = click.Context(command, info_name=name)
        usage = " ".join(command.collect_usage_pieces(context))
        text = inspect.cleandoc((command.help or "").replace("\b", ""))
        parts += [f"## {name.partition(' ')[2]}\n", f"    {name} {usage}\n", f"{text}\n"]
        options = [each for each in command.params if isinstance(each, click.Option)]
        if options:
            parts += [
                "| option | |",
                "|---|---|",
                *(_option(each, context) for each in options),
                "",
            ]
    return "\n".join(parts)


def _commands(name: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for each, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(f"{name} {each}", command)
        else:
            yield f"{name} {each}", command


def _option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    names, text = record or (", ".join(option.opts), option.help or "")
    return f"| `{names.replace('|', ', ')}` | {text.replace('|', ', ').strip()} |"


def cookbook() -> dict[str, str]:
    """A page for each problem, by its place: comment, rulebook, tests; and their list."""
    listed = (ROOT / COOKBOOK / "README.md").read_text(encoding="utf-8")
    pages = {}
    for number, problem, know in _ROW.findall(listed.partition("|---|")[2]):
        (tests,) = (ROOT / COOKBOOK).glob(f"{number}-*.test.yaml")
        name = tests.name.removesuffix(".test.yaml")
        book = tests.with_name(f"{name}.yaml").read_text(encoding="utf-8").split("\n", 1)[1]
        comment = re.match(r"(# .*\n)*", book)
        said = re.sub(r"^# ", "", comment[0] if comment else "", flags=re.MULTILINE)
        shown = tests.read_text(encoding="utf-8").split("\n", 1)[1]
        pages[f"cookbook/{name}.md"] = "\n".join(
            (
                f"# {problem[0].upper()}{problem[1:]}\n",
                f"{said}",
                *([f"What to know: {know}.\n"] if know else []),
                f"```yaml\n{book.removeprefix(comment[0] if comment else '')}```\n",
                "## Its tests\n",
                f"`tidegate test {COOKBOOK}/{tests.name}` runs them.\n",
                f"```yaml\n{shown}```\n",
            )
        )
        listed = listed.replace(f"| {number} |", f"| [{number}]({name}.yaml) |")
    return {"cookbook/index.md": listed, **pages}
