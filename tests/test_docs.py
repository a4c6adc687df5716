"""The pages are true: what they name exists, their links lead somewhere, their code is code."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
import typer

from microtron.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(str(page.relative_to(ROOT))
               for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"),
                            *ROOT.glob("docs/tutorials/*.md")))
SOURCE = re.compile(r"(?<![\w*./-])[\w*.][\w*./-]*\.(?:py|md|asm|cpp|h)(?![\w/])")
TEST = re.compile(r"(?:(?P<file>tests/[\w/]+\.py)::)?\b(?P<name>test_\w+)\b(?!\.py|/)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ +(?:\$ )?((?:\.venv/bin/)?microtron\b.*)$", re.MULTILINE)
NOT_OURS = {"vta.h", "vta.cc", "model_tflite.h", "registers.h", "gowin_arch_gen.py"}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def sources() -> list[PurePosixPath]:
    """Every file of the repository but the hidden ones and bytecode."""
    found = [path for path in ROOT.iterdir() if not path.name.startswith(".")]
    found += [each for folder in found if folder.is_dir() for each in folder.rglob("*")]
    return [PurePosixPath(path.relative_to(ROOT)) for path in found
            if path.is_file() and path.parent.name != "__pycache__"]


@cache
def endings() -> set[str]:
    """How every file may be called: its path from any folder on."""
    return {"/".join(path.parts[first:]) for path in sources() for first in range(len(path.parts))}


@cache
def functions_of(file: PurePosixPath) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def is_there(name: str) -> bool:
    """Whether a name is that of a file, from the root on or from some folder on."""
    name = name.removeprefix("../")
    if "*" in name:
        return any(path.match(name) for path in sources())
    return str(PurePosixPath(name)) in endings()


def missing_files(text: str) -> list[str]:
    return sorted({name for name in SOURCE.findall(text) if not is_there(name)} - NOT_OURS)


def missing_tests(text: str) -> Iterator[str]:
    for found in TEST.finditer(text):
        files = [path for path in sources() if path.parts[0] == "tests" and path.suffix == ".py"
                 and found["file"] in (None, str(path))]
        if not any(found["name"] in functions_of(file) for file in files):
            yield found[0]


def anchors(text: str) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: str, text: str) -> Iterator[str]:
    for target, anchor in LINK.findall(text):
        path = (ROOT / page).parent / target if target else ROOT / page
        if not path.exists() or (anchor and anchor not in anchors(path.read_text("utf-8"))):
            yield f"{target}#{anchor}" if anchor else target


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page):
    assert missing_files(text_of(page)) == []


def test_recipes_name_files_from_the_root_on():
    names = {name for name in SOURCE.findall(text_of("docs/recipes.md")) if "::" not in name}
    assert len(names) > 40
    assert [name for name in sorted(names) if not (ROOT / name).exists()
            and not (ROOT / "docs" / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page):
    assert list(missing_tests(text_of(page))) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    assert list(dead_links(page, text_of(page))) == []


def test_every_page_can_be_reached_from_the_readme():
    linked = {target for target, _ in LINK.findall(text_of("README.md"))}
    assert set(PAGES) - {"README.md"} <= linked


@pytest.mark.parametrize(("text", "missing"), [
    ("`isa/config.py`, **load.py** and `tests/*.py` in isa/config_files.py.", []),
    ("`isa/configs.py` and `twins/gone.py`", ["isa/configs.py", "twins/gone.py"]),
    ("`isa/load.py` is in another folder", ["isa/load.py"]),
    ("prog.mt, small.v, https://docs.python.org/index.html", []),
])
def test_the_search_for_files_finds_those_that_are_gone(text, missing):
    assert missing_files(text) == missing


@pytest.mark.parametrize(("text", "missing"), [
    ("`tests/test_project.py`, test_arrows_between_folders_point_one_way", []),
    ("`tests/test_project.py::test_arrows_between_folders_point_one_way`", []),
    ("test_of_nothing", ["test_of_nothing"]),
    ("`tests/isa/test_config.py::test_arrows_between_folders_point_one_way`",
     ["tests/isa/test_config.py::test_arrows_between_folders_point_one_way"]),
])
def test_the_search_for_tests_finds_those_that_are_gone(text, missing):
    assert list(missing_tests(text)) == missing


def test_the_search_for_links_finds_dead_ones():
    text = "[a](isa.md) [b](isa.md#nowhere) [c](gone.md) [d](https://x.org) [e](#here)\n## Here\n"
    assert list(dead_links("docs/none.md", text)) == ["isa.md#nowhere", "gone.md", "#here"]


def blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for number, code in enumerate(PYTHON.findall(text_of(page))):
            yield pytest.param(code, id=f"{page}-{number}")


@pytest.mark.parametrize("code", [*blocks()])
def test_python_on_a_page_can_be_parsed_and_finds_what_it_imports(code):
    tree = ast.parse(code)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    ours = [node for node in imports if (getattr(node, "module", None) or "").startswith(
        "microtron")]
    exec(compile(ast.Module(ours, []), "page", "exec"), {})


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for number, line in enumerate(COMMAND.findall(text_of(page))):
            yield pytest.param(line, id=f"{page}-{number}")


@cache
def all_commands() -> typer.core.TyperGroup:
    return typer.main.get_command(app)


@pytest.mark.parametrize("line", [*commands()])
def test_commands_on_a_page_have_options_that_exist(line):
    _, *words = shlex.split(line, comments=True)
    command = all_commands()
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command.make_context(line, words)       # refuses what it does not know


@pytest.mark.parametrize("folder", ["compiler", "sim"])
def test_the_walk_through_the_house_visits_every_room(folder):
    text = text_of("docs/architecture.md")
    for room in sorted(path.parent.name for path in (ROOT / folder).glob("*/__init__.py")):
        assert re.search(rf"^\| `(?:{folder}/)?{room}/` \|", text, re.MULTILINE), room


def entries() -> list[tuple[str, str]]:
    """Words of the glossary, without their sense, and the file that defines each."""
    return re.findall(r"^\| ([^|(]+?)(?: \([^)]+\))? \| .+ \| `([^`]+)` \|$",
                      text_of("docs/glossary.md"), re.MULTILINE)


def test_words_of_the_glossary_are_in_order():
    words = [word.lower() for word, _ in entries()]
    assert words == sorted(words)
    assert len(words) > 20


@pytest.mark.parametrize(("word", "file"), entries())
def test_the_file_that_defines_a_word_has_it(word, file):
    first, *rest = word.split()
    pattern = rf"\b{first}" + "".join(rf"\W+{each}" for each in rest)
    text = f"{Path(file).stem} {(ROOT / file).read_text('utf-8')}"
    assert re.search(pattern, text, re.IGNORECASE), f"{file} does not say {word}"
