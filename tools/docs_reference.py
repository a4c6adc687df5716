"""Pages of the documentation's site that are read off the code: commands and the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import microtron
from microtron.cli.main import parser
from microtron.cli.parsing.help import GROUPS


def command_page() -> str:
    """A section for every command, from the parser that reads the command line."""
    root = parser(with_operators=True)
    lines = ["# Commands", "", "Every command with all of its options, written from the parser. "
             "[A tour by example](../commands.md) is easier to begin with.", ""]
    known = {name for names in GROUPS.values() for name in names}
    rest = tuple(name for name in root.commands if name not in known)
    for title, names in {**GROUPS, **({"Other": rest} if rest else {})}.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += _command(f"microtron {name}", root.commands[name], 3)
    return "\n".join(lines) + "\n"


def _command(path: str, command: Any, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {path}", "")
    below = getattr(command, "commands", {})
    context = command.context_class(command, info_name=path)
    if not below:
        usage = " ".join(command.collect_usage_pieces(context))
        yield from ("```text", f"{path} {usage}", "```", "")
    yield from (_help_text(command.help or ""), "")
    if not below:
        yield from _parameters(command.params, context)
    for name, child in below.items():
        yield from _command(f"{path} {name}", child, level + 1)


def _help_text(text: str) -> str:
    """Paragraphs of a help text; examples as code."""
    found = []
    for paragraph in inspect.cleandoc(text).replace("\b\n", "").split("\n\n"):
        line = " ".join(paragraph.split())
        if line.startswith("Example: "):
            found.append(f"Example:\n\n```text\n{line.removeprefix('Example: ')}\n```")
        else:
            found.append(_escape(line))
    return "\n\n".join(found)


def _parameters(parameters: Sequence[Any], context: Any) -> Iterator[str]:
    rows = [each.get_help_record(context) for each in parameters]
    rows = [each for each in rows if each is not None]
    yield from (f"- `{name}`: {_escape(' '.join(text.split()))}" for name, text in rows)
    yield ""


def _escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_<>\[\]$])", r"\\\1", text)


def api_page() -> str:
    """A section for every public name, from signatures and docstrings."""
    lines = ["# Python reference", "", "Every name of `import microtron`, from its docstring. "
             "[The Python interface](../api.md) says what is for what.", ""]
    for name in sorted(set(microtron.__all__) - {"__version__"}, key=str.lower):
        lines += _entry(name, getattr(microtron, name))
    return "\n".join(lines) + "\n"


def _entry(name: str, value: object) -> Iterator[str]:
    yield from (f"## {name}", "")
    if not (inspect.isclass(value) or callable(value)):
        yield from (f"A dictionary: {', '.join(map(str, value))}."
                    if isinstance(value, dict) else "", "")
        return
    yield from _signature(f"microtron.{name}", value)
    yield from _docstring(value)
    if inspect.isclass(value):
        for member, each in vars(value).items():
            yield from _member(name, member, each)


def _member(owner: str, name: str, value: object) -> Iterator[str]:
    """A public method or property that says what it is."""
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if name.startswith("_") or not inspect.isfunction(function) or not inspect.getdoc(function):
        return
    yield from (f"### {owner}.{name}", "")
    if not isinstance(value, property):
        yield from _signature(f"{owner}.{name}", function)
    yield from _docstring(function)


def _signature(name: str, value: object) -> Iterator[str]:
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return
    parameters = [_parameter(each) for each in found.parameters.values() if each.name != "self"]
    kinds = [each.kind for each in found.parameters.values() if each.name != "self"]
    if (inspect.Parameter.KEYWORD_ONLY in kinds
            and inspect.Parameter.VAR_POSITIONAL not in kinds):
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    text = f"{name}({', '.join(parameters)})"
    if len(text) > 90:
        text = name + "(\n    " + ",\n    ".join(parameters) + ")"
    yield from ("```python", text, "```", "")


def _parameter(parameter: inspect.Parameter) -> str:
    """As it is written in the source, but for defaults that have no short form."""
    stars = "*" * ((parameter.kind == parameter.VAR_POSITIONAL)
                   + 2 * (parameter.kind == parameter.VAR_KEYWORD))
    hint = parameter.annotation
    type_ = "" if hint is parameter.empty else f": {hint if isinstance(hint, str) else _name(hint)}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{type_}"
    default = repr(parameter.default)
    if "<" in default and not isinstance(parameter.default, str):
        default = "..."
    return f"{parameter.name}{type_} = {default}"


def _name(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _docstring(value: object) -> Iterator[str]:
    """Paragraphs as they are; what is set in columns stays so."""
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value) and text.startswith(f"{value.__name__}("):
        return                              # what dataclasses write themselves
    for paragraph in text.split("\n\n"):
        if re.search(r"\S {2,}\S|^ ", paragraph, re.MULTILINE):
            yield from ("```text", paragraph, "```", "")
        else:
            yield from (re.sub(r"([<>*_\[\]])", r"\\\1", paragraph) if "`" not in paragraph
                        else paragraph.replace("<", "\\<"), "")
