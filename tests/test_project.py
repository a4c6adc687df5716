"""The house keeps its own rules: documented dependencies, one-way arrows, a light command line."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "isa": {"base"},
    "hw": {"base", "isa"},
    "sim": {"base", "isa"},
    "compiler": {"base", "isa"},
    "runtime": {"base", "isa", "sim", "compiler"},
    "testing": {"base", "isa", "sim", "runtime"},
    "quantization": {"base", "isa", "sim", "compiler", "runtime"},
    "report": {"base", "isa", "sim", "compiler", "runtime"},
    "boards": {"base", "isa", "hw", "runtime"},
    "explore": {"base", "isa", "sim", "compiler", "runtime", "boards"},
}
MAY_IMPORT["cli"] = set(MAY_IMPORT)
# Inside a folder, each room and what it may import of the others; rooms further down are built on
# those above. A file beside the rooms is a room of its own.
ROOMS: dict[str, dict[str, set[str]]] = {"compiler": {}, "sim": {}, "hw": {}, "boards": {},
                                         "isa": {}, "runtime": {}, "quantization": {},
                                         "explore": {}}
for rooms in ("errors", "garbage", "expression", "nest", "schedule", "accelerator", "operators",
              "compile", "graph", "frontends", "passes", "cpu", "network"):
    ROOMS["compiler"][rooms] = set(ROOMS["compiler"])
for rooms in ("arguments", "timeline", "token_counters", "counts", "limit", "compiled",
              "functional", "llvm", "twins", "cycle", "report", "simulate", "simulated_cost",
              "parallel"):
    ROOMS["sim"][rooms] = set(ROOMS["sim"])
for rooms in ("layouts", "interfaces", "logic", "fifo", "start", "targets", "sequencer", "tokens",
              "scratchpad", "accumulator", "counters", "segments", "control", "bus", "fetch",
              "transfer", "load", "store", "gemm", "alu", "top"):
    ROOMS["hw"][rooms] = set(ROOMS["hw"])
for rooms in ("facts", "crossing", "firmware", "build", "soc", "ecp5", "gowin", "zynq", "vendor",
              "timing"):
    ROOMS["boards"][rooms] = set(ROOMS["boards"])
for rooms in ("faults", "memory_timing", "record", "instructions", "arithmetic", "config",
              "config_files", "declarations", "stream", "registers", "program", "program_key",
              "address_map", "verification", "assembly", "image", "program_files", "c_header",
              "manual_prose", "manual"):
    ROOMS["isa"][rooms] = set(ROOMS["isa"])
for rooms in ("switch_interval", "stopping", "clock", "devices", "board", "models", "times",
              "reports", "aot", "monitor", "api"):
    ROOMS["runtime"][rooms] = set(ROOMS["runtime"])
for rooms in ("parameters", "channels_first", "prepare", "selection", "execution", "layer_steps",
              "simulation", "calibration", "options", "evaluation", "insertion", "layers",
              "techniques", "pipeline", "export", "report", "quantize", "tables"):
    ROOMS["quantization"][rooms] = set(ROOMS["quantization"])
for rooms in ("time_left", "points", "records", "exchange", "distributed", "measure", "sampling",
              "layer_sources", "pipeline", "features", "dataset", "data_files", "calibration_files",
              "validation", "predictor", "fit", "search", "schedule_files", "tune", "area",
              "clock", "codesign"):
    ROOMS["explore"][rooms] = set(ROOMS["explore"])
# Folders whose own folders stay small enough to read, and whose modules have names of their own.
TIDY = ("base", "isa", "hw", "sim", "compiler", "runtime", "testing", "quantization", "report",
        "boards", "explore", "cli", "tests", "tools", "examples", "benchmarks")
MOST_FILES = 18                 # Python files in one folder
MOST_ANY = 200              # uses of Any outside of tests
BESIDE = ("benchmarks", "tools", "examples")    # what is no part of the package
HAS_AMARANTH = {"hw", "boards"}
HEAVY = ("numpy", "numba", "llvmlite", "amaranth", "onnx", "rich")


def requirements() -> Iterator[tuple[str, str]]:
    """Name and range of every package that pyproject.toml asks for."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    for group in (PROJECT["build-system"]["requires"], PROJECT["project"]["dependencies"], *extras):
        for requirement in group:
            name = re.match(r"[\w.-]+", requirement)[0]
            if name != "microtron":         # one extra may include another
                yield name, requirement.removeprefix(name)


def documented() -> dict[str, tuple[str, str]]:
    """Name → (range, reason) for each table row of docs/dependencies.md with three cells."""
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (.+) \|$", text, re.MULTILINE)
    return {name: (versions, reason) for name, versions, reason in rows}


def sources(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py"))


@cache
def parsed(source: str) -> list[ast.AST]:
    """All imports and names of a source: several tests look at each."""
    return [node for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Name | ast.Attribute)]


def imports(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """The absolute names that a module of `package` imports, at its top or inside functions."""
    for node in parsed(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imports_of(part: str) -> Iterator[tuple[str, str]]:
    """Pairs of a file of ours and a name it imports."""
    for path in sources(part):
        if path.exists():
            place = path.relative_to(ROOT)
            for name in imports(path.read_text(encoding="utf-8"),
                                ("microtron", *place.parent.parts)):
                yield str(place), name


def test_every_dependency_has_its_range_and_reason_in_the_documentation():
    assert {name: versions for name, (versions, _) in documented().items()} == dict(requirements())


def test_every_system_package_has_its_reason_in_the_documentation():
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for goal, needs in PROJECT["tool"]["microtron"]["goals"].items():
        for package in needs["debian"]:
            name = package.format(python="python3.x", other="x86-64", other_libraries="amd64")
            assert f"| `{name}` |" in text, f"make {goal} installs {name} for no reason"


def test_every_goal_names_extras_that_exist():
    for needs in PROJECT["tool"]["microtron"]["goals"].values():
        assert set(needs["extras"]) <= set(PROJECT["project"]["optional-dependencies"])


def test_every_package_folder_is_installed():
    folders = {folder.parent.relative_to(ROOT)
               for part in MAY_IMPORT for folder in (ROOT / part).rglob("__init__.py")}
    names = {".".join(("microtron", *folder.parts)) for folder in folders}
    assert {"microtron", *names} == set(PROJECT["tool"]["setuptools"]["packages"])


def test_an_installed_package_says_that_it_has_types():
    """By the marker file that type checkers look for, as setuptools would put it into a wheel; the
    network of the self-test is beside it."""
    settings = PROJECT["tool"]["setuptools"]
    chosen = {name.replace("-", "_"): settings[name]
              for name in ("package-dir", "packages", "package-data")}
    script = ("from setuptools import Distribution\n"
              f"build = Distribution({chosen!r}).get_command_obj('build_py')\n"
              "build.ensure_finalized()\n"
              "print({package: files for package, _, _, files in build.data_files}['microtron'])\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['py.typed', 'examples/digits/digits.onnx']\n"


@pytest.mark.parametrize(("line", "name"), [
    ("import microtron.hw.gemm.gemm", "microtron.hw.gemm.gemm"),
    ("from microtron import hw", "microtron.hw"),
    ("from ...hw.gemm.gemm import Gemm", "microtron.hw.gemm.gemm.Gemm"),
    ("from ... import hw", "microtron.hw"),
    ("from . import memory", "microtron.sim.functional.memory"),
    ("def late():\n    import amaranth", "amaranth"),
])
def test_the_search_for_imports_knows_every_way_to_import(line, name):
    assert list(imports(line, ("microtron", "sim", "functional"))) == [name]


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_arrows_between_folders_point_one_way(part):
    for file, name in imports_of(part):
        first, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if first == "microtron" and target in MAY_IMPORT:
            assert target in MAY_IMPORT[part] | {part}, f"{file} imports {name}"


@pytest.mark.parametrize("part", ROOMS)
def test_arrows_between_rooms_of_a_folder_point_one_way(part):
    for file, name in imports_of(part):
        room = Path(file).relative_to(part).parts[0].removesuffix(".py")
        target = name.removeprefix(f"microtron.{part}.").partition(".")[0]
        if room != "__init__" and name.startswith(f"microtron.{part}."):
            assert target in ROOMS[part][room] | {room}, f"{file} imports {name}"


@pytest.mark.parametrize("part", ROOMS)
def test_every_room_of_a_folder_is_listed(part):
    found = {path.stem for path in (ROOT / part).iterdir()
             if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__"} == set(ROOMS[part])


@pytest.mark.parametrize("part", TIDY)
def test_no_folder_has_more_files_than_one_can_take_in(part):
    for folder in {path.parent for path in sources(part)}:
        files = len(list(folder.glob("*.py")))
        assert files <= MOST_FILES, f"{folder.relative_to(ROOT)} has {files} Python files"


@pytest.mark.parametrize("part", TIDY)
def test_every_module_of_a_folder_has_a_name_of_its_own(part):
    places: dict[str, list[str]] = {}
    for path in sources(part):
        if path.name != "__init__.py":
            places.setdefault(path.name, []).append(str(path.relative_to(ROOT)))
    assert not [" and ".join(each) for each in places.values() if len(each) > 1]


def test_what_is_known_of_a_value_is_in_its_type():
    """Every use of the name `Any` counts, in annotations and in code; imports do not. A library
    without types has an alias of its own, which says so once."""
    uses = {str(path.relative_to(ROOT)): count for part in (*MAY_IMPORT, *BESIDE)
            for path in sources(part) if (count := count_any(path.read_text(encoding="utf-8")))}
    most = sorted(uses.items(), key=lambda each: -each[1])[:5]
    assert sum(uses.values()) < MOST_ANY, f"most are in {most}"


def count_any(text: str) -> int:
    return sum(getattr(node, "id", None) == "Any" or getattr(node, "attr", None) == "Any"
               for node in parsed(text))


@pytest.mark.parametrize(("text", "count"), [
    ("from typing import Any", 0), ("x: Any", 1), ("x: dict[Any, typing.Any]", 2),
    ("def f(x: Any, *y: Any) -> Any:\n    return cast(Any, x)", 4), ("'Any'  # Any", 0)])
def test_the_search_for_any_counts_uses(text, count):
    assert count_any(text) == count


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("microtron", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def module_imports() -> dict[str, set[str]]:
    """Our modules, and those of ours that each imports: at its top, inside functions, and for type
    checkers."""
    paths = {module_of(path): path for part in MAY_IMPORT for path in sources(part)}
    found = {}
    for module, path in paths.items():
        package = ("microtron", *path.relative_to(ROOT).parent.parts)
        names = imports(path.read_text(encoding="utf-8"), package)
        imported = {name if name in paths else name.rpartition(".")[0] for name in names}
        found[module] = imported & set(paths)
    return found


def circle_in(arrows: dict[str, set[str]]) -> list[str] | None:
    """Modules that import each other in a circle, the first one again at the end."""
    finished: set[str] = set()

    def visit(module: str, way: list[str]) -> list[str] | None:
        if module in way:
            return [*way[way.index(module):], module]
        if module not in finished:
            for target in sorted(arrows[module]):
                circle = visit(target, [*way, module])
                if circle is not None:
                    return circle
            finished.add(module)
        return None

    return next(filter(None, (visit(module, []) for module in arrows)), None)


@pytest.mark.parametrize(("arrows", "circle"), [
    ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, None),
    ({"a": {"a"}}, ["a", "a"]),
    ({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}, ["b", "d", "b"]),
])
def test_the_search_for_circles_finds_them(arrows, circle):
    assert circle_in(arrows) == circle


def test_a_circle_counts_for_type_checkers_and_inside_functions_too():
    source = ("if TYPE_CHECKING:\n    from .early import a\n"
              "class Late:\n    def late(self):\n        from .late import b\n")
    assert set(imports(source, ("microtron",))) == {"microtron.early.a", "microtron.late.b"}


def test_modules_do_not_import_each_other_in_a_circle():
    circle = circle_in(module_imports())
    assert circle is None, " imports ".join(circle)


def room_imports(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Rooms, and those beside each that it imports. The rooms of a folder are its folders and the
    modules beside them."""
    packages = {name.rpartition(".")[0] for name in arrows}
    rooms: dict[str, set[str]] = {}
    for module, targets in arrows.items():
        for target in targets - packages:
            ours, theirs = module.split("."), target.split(".")
            same = next((place for place, both in enumerate(zip(ours, theirs, strict=False))
                         if both[0] != both[1]), None)
            if same is not None:            # otherwise a package imports what is inside of it
                source, aim = ".".join(ours[:same + 1]), ".".join(theirs[:same + 1])
                rooms.setdefault(source, set()).add(aim)
                rooms.setdefault(aim, set())
    return rooms


def test_rooms_beside_each_other_do_not_import_each_other_in_a_circle():
    assert room_imports({"m.a.x": {"m.b.y"}, "m.b.y": {"m.c"}, "m.c": set()}) == {
        "m.a": {"m.b"}, "m.b": {"m.c"}, "m.c": set()}
    assert circle_in(room_imports({"m.a.x": {"m.b.y"}, "m.b.z": {"m.a.w"}})) is not None
    circle = circle_in(room_imports(module_imports()))
    assert circle is None, " imports ".join(circle)


@pytest.mark.parametrize("part", sorted(set(MAY_IMPORT) - HAS_AMARANTH))
def test_amaranth_stays_in_hardware_and_boards(part):
    for file, name in imports_of(part):
        assert not name.startswith("amaranth"), f"{file} imports {name}"


def test_help_answers_without_loading_what_only_work_needs():
    script = ("import sys\n"
              "from microtron.cli.main import main\n"
              "sys.argv = ['microtron', '--help']\n"
              "try:\n"
              "    main()\n"
              "except SystemExit as stop:\n"
              "    assert not stop.code, stop.code\n"
              "print(*sys.modules, file=sys.stderr)\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert "disasm" in done.stdout
    assert not set(HEAVY) & set(done.stderr.split())
