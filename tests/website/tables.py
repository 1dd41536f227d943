"""The pages of the reference that are tables: commands, settings, features, methods, facts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields

import click
from griffe import Docstring, DocstringSectionAttributes

import mcpgen.spec
from mcpgen.cli import cli
from mcpgen.model import exports
from mcpgen.model.feature_table import FEATURES, Feature
from mcpgen.package import settings
from mcpgen.schema import revision_facts
from mcpgen.schema.method_facts import MethodFacts
from website.markdown import table
from website.reference import PACKAGE, ROOT

HEAD = "---\nrendered: true\n---\n\n"
REQUIREMENTS = {"client": "clients", "server": "servers", "http": "HTTP", "stdio": "stdio"}
SETTINGS = (
    (
        "[tool.mcpgen]",
        settings.PackageSettings,
        "A package; several are in `[[tool.mcpgen.packages]]`, with the same keys each.",
    ),
    ("[tool.mcpgen.mirror]", settings.MirrorSettings, "A server that the project mirrors."),
    ("[[tool.mcpgen.render]]", settings.RenderSettings, "A folder of templates to render."),
)
"""Tables of pyproject.toml, with the class of their keys and a sentence."""
FACTS = {
    each.name: type(getattr(revision_facts.Facts(), each.name))
    for each in fields(revision_facts.Facts)
    if each.name != "methods"
}
"""The classes of facts by the name of their table in `facts.toml`."""


def code(value: object) -> str:
    """A value within a line, as code; empty for an absent one."""
    match value:
        case None | "" | ():
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return ", ".join(map(code, value))
        case _:
            return f"`{value}`"


def meanings(of: type) -> Mapping[str, str]:
    """The explanations of attributes in the docstring of a class, by name."""
    sections = Docstring(of.__doc__ or "").parse("google", warnings=False)
    attributes = [each for each in sections if isinstance(each, DocstringSectionAttributes)]
    return {each.name: each.description for section in attributes for each in section.value}


def default_of(field: Field[object]) -> str:
    """The default of a field, as code; `required` if there is none."""
    return "required" if field.default is MISSING else code(field.default) or "none"


def commands() -> str:
    """The page of the commands of mcpgen."""
    about = (
        "Commands and options, as `mcpgen --help` shows them. Errors are one line on standard"
        " error: exit code 2 for wrong usage, 1 for all others."
    )
    sections = "".join(command_section(*each) for each in commands_below(cli, "mcpgen"))
    return f"{HEAD}# Commands of mcpgen\n\n{about}\n\n{sections}"


def commands_below(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """A command and those below it, by the words that call them."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from commands_below(inner, f"{path} {name}")


def command_section(path: str, command: click.Command) -> str:
    """A heading, the usage, the help and the options of a command."""
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    options = [each for each in command.params if isinstance(each, click.Option)]
    rows = [
        (option_words(each, context), each.help or "", default_word(each, context))
        for each in options
        if not each.hidden
    ]
    listed = table(("option", "meaning", "default"), rows) if rows else ""
    return f"## {path}\n\n```text\n{usage}\n```\n\n{help_text(command)}{listed}"


def default_word(option: click.Option, context: click.Context) -> str:
    """The value of an option that is not given, as code; empty for none, or for a flag."""
    value = option.get_default(context, call=False)
    is_given = isinstance(value, str | int | float) and not isinstance(value, bool)
    return code(value) if is_given and not option.is_flag else ""


def option_words(option: click.Option, context: click.Context) -> str:
    """The spellings of an option with its value, as code."""
    value = "" if option.is_flag else f" {option.make_metavar(context)}"
    return ", ".join(f"`{word}{value}`" for word in (*option.opts, *option.secondary_opts))


def help_text(command: click.Command) -> str:
    """The help of a command in Markdown; a paragraph of several kept lines is a block."""
    paragraphs = re.split(r"\n\s*\n", (command.help or "").expandtabs().strip())
    written = []
    for paragraph in paragraphs:
        lines = [line.strip("\b") for line in paragraph.splitlines()]
        if "\b" in paragraph:
            block = "\n".join(line.rstrip() for line in lines if line.strip())
            written.append(f"```text\n{block}\n```\n\n")
        else:
            written.append(" ".join(line.strip() for line in lines) + "\n\n")
    return "".join(written)


def package_commands() -> str:
    """The page of the commands of a package, by their help."""
    words = re.findall(r"^    (\w+)  ", help_of(), re.MULTILINE)
    about = (
        "What `python -m pkg COMMAND --help` prints. The guide is"
        " [The command line of a package](../command-line.md)."
    )
    sections = "".join(f"## {word}\n\n```text\n{help_of(word)}```\n\n" for word in words)
    return f"{HEAD}# Commands of a package\n\n{about}\n\n{sections}"


def help_of(*words: str) -> str:
    """The help of the package's command line, with the name `pkg`."""
    done = subprocess.run(
        [sys.executable, "-m", PACKAGE, *words, "--help"],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'generated'}", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.replace(PACKAGE, "pkg")


def settings_page() -> str:
    """The page of the keys in pyproject.toml."""
    about = (
        "The keys of `[tool.mcpgen]` in pyproject.toml. Paths start from the file, and an unknown"
        " key is an error. The guide is [New projects and settings](../new-project.md#settings)."
    )
    sections = ""
    for title, of, sentence in SETTINGS:
        explained = meanings(of)
        rows = [(code(f.name), explained[f.name], default_of(f)) for f in fields(of)]
        listed = table(("key", "meaning", "default"), rows)
        sections += f"## `{title}`\n\n{sentence}\n\n{listed}"
    general = [(code("schemas_dir"), meanings(settings.Settings)["schemas_dir"], "none")]
    sections += "## For all packages\n\n" + table(("key", "meaning", "default"), general)
    return f"{HEAD}# Settings\n\n{about}\n\n{sections}"


def features_page() -> str:
    """The page of features, with what each adds."""
    about = (
        "What each feature of `--features` adds to a package. The guide is"
        " [Parts, transports and features](../parts.md#features)."
    )
    header = ("feature", "in packages with", "default", "brings")
    overview = table(header, map(feature_row, FEATURES))
    sections = "".join(map(feature_section, FEATURES))
    return f"{HEAD}# Features\n\n{about}\n\n{overview}{sections}"


def feature_row(feature: Feature) -> tuple[str, ...]:
    """A row of the table of features."""
    needs = ", ".join(REQUIREMENTS.get(part, part) for part in sorted(feature.parts))
    default = "yes" if feature.is_default else "no"
    link = f"[`{feature.name}`](#{feature.name})"
    return link, needs or "clients or servers", default, code(feature.brings)


def feature_section(feature: Feature) -> str:
    """The names that a feature adds."""
    added = (
        ("names", names_of(feature)),
        ("members of `Server`", feature.server_members),
        ("members of clients", feature.client_members),
        ("members of `Context`", feature.context_members),
        ("options", feature.options),
        ("commands", feature.commands),
        ("environment variables", feature.variables),
        ("comes with the extensions", tuple(sorted(feature.extensions))),
    )
    rows = "".join(f"- {title}: {code(names)}\n" for title, names in added if names)
    return f"## `{feature.name}`\n\n{rows or 'It adds classes and functions.'}\n\n"


def names_of(feature: Feature) -> tuple[str, ...]:
    """The public names that packages have only with a feature, sorted."""
    names: set[str] = set()
    others: set[str] = set()
    for row in exports.EXPORTS:
        parts = {word for part in row.parts for word in part.split("+")}
        everywhere = all(feature.name in part.split("+") for part in row.parts)
        (names if feature.name in parts and everywhere else others).update(row.names)
    return tuple(sorted(names - others))


def methods_page() -> str:
    """The page of methods, with the revisions that have them."""
    specification = mcpgen.spec.load("all")
    names = [revision.name for revision in specification.revisions]
    rows: dict[tuple[str, str], dict[str, mcpgen.spec.Method]] = {}
    for revision in specification.revisions:
        for method in revision.methods.all:
            rows.setdefault((method.name, method.sender), {})[revision.name] = method
    listed = []
    for (name, sender), by_revision in sorted(rows.items()):
        newest = [*by_revision.values()][-1]
        marks = ("yes" if revision in by_revision else "" for revision in names)
        result = " or ".join(code(each) for each in newest.results)
        constant = code(f"methods.{newest.constant}")
        cells = (code(name), constant, sender, newest.kind, code(newest.params), result)
        listed.append((*cells, *marks))
    about = (
        "Every method of every revision: its row in the module `methods` of a revision, who sends"
        " it, its params and its result, as in the newest revision that has it. A client has a"
        " coroutine for each request, and a server handlers; [Types only](../types.md) uses the"
        " tables without either."
    )
    header = ("method", "in Python", "sent by", "kind", "params", "result", *names)
    return f"{HEAD}# Methods\n\n{about}\n\n{table(header, listed)}"


def facts_page() -> str:
    """The page of facts: statements of the prose, with their values in each revision."""
    revisions = mcpgen.spec.load("all").revisions
    names = [revision.name for revision in revisions]
    sections = ""
    for title, of in FACTS.items():
        explained = meanings(of)
        rows = [
            (
                code(f.name),
                explained[f.name],
                *(code(each.facts[title][f.name]) for each in revisions),
            )
            for f in fields(of)
        ]
        sections += (
            f"## `[{title}]`\n\n{summary_of(of)}\n\n{table(('fact', 'meaning', *names), rows)}"
        )
    explained = meanings(MethodFacts)
    rows = [(code(f.name), explained[f.name], default_of(f)) for f in fields(MethodFacts)]
    sections += f"## `[methods]`\n\n{summary_of(MethodFacts)}\n\n"
    sections += table(("fact", "meaning", "default"), rows)
    about = (
        "Statements of a revision that its schema lacks, since only the pages of the specification"
        " make them. A facts file has a table for each heading; see"
        " [Schemas and facts](../schemas.md#a-facts-file)."
    )
    return f"{HEAD}# Facts\n\n{about}\n\n{sections}"


def summary_of(of: type) -> str:
    """The first paragraph of a docstring."""
    return " ".join((of.__doc__ or "").strip().partition("\n\n")[0].split())


def table_pages() -> dict[str, str]:
    """The pages of tables, by file name."""
    return {
        "commands.md": commands(),
        "package-commands.md": package_commands(),
        "settings.md": settings_page(),
        "features.md": features_page(),
        "methods.md": methods_page(),
        "facts.md": facts_page(),
    }
