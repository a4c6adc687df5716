"""What `import microtron` offers: names that are there, documented, typed and used by examples."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import microtron
from microtron.base.keywords import KeywordsChecked
from microtron.compiler.operators.catalogue import OPERATORS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = [name for name in microtron.__all__ if name != "__version__"]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXTENDING = {"docs/recipes.md", "docs/passes.md", "examples/new_intrinsic.py"}


def typed() -> set[str]:
    """The names that a type checker sees."""
    [block] = [node for node in SOURCE.body if isinstance(node, ast.If)
               and isinstance(node.test, ast.Name)]
    return {alias.name for node in block.body for alias in node.names}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_imported_and_has_a_docstring(name):
    found = getattr(microtron, name)
    assert name == "PRESETS" or (found.__doc__ and not found.__doc__.startswith(f"{name}("))


def test_type_checkers_see_the_names_that_there_are():
    assert typed() == set(NAMES)
    assert set(microtron.__all__) <= set(dir(microtron))
    assert not [name for name in dir(microtron) if name.startswith("_") and "__" not in name]


def test_other_names_are_no_attributes():
    with pytest.raises(AttributeError, match="has no attribute 'compiel'"):
        microtron.compiel  # noqa: B018


def test_importing_the_package_imports_nothing_of_it():
    script = ("import sys, microtron\n"
              "print([name for name in sys.modules if name.startswith('microtron.')])")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=True, cwd=ROOT.parent)
    assert done.stdout == "[]\n"


def test_every_operator_has_its_description_at_the_top():
    assert {kind.__name__ for kind in OPERATORS} <= set(NAMES)


def test_the_page_names_all_of_it_and_nothing_else():
    tables = PAGE.partition("## Networks")[2].partition("## Extension points")[0]
    cells = re.findall(r"^\| (`.+?`) \|", tables, re.MULTILINE)
    listed = [re.match(r"\w+", each)[0] for cell in cells
              for each in re.findall(r"`([^`]+)`", cell)]
    assert sorted(listed) == sorted({*listed})
    assert set(listed) == set(NAMES)


@pytest.mark.parametrize("shown", re.findall(r"`(\w+\([^`]*\))` [|,]", PAGE))
def test_the_page_shows_the_arguments_that_functions_have(shown):
    [function] = ast.parse(f"def {shown}: ...").body
    found = inspect.signature(getattr(microtron, function.name)).parameters
    positional = [name for name, each in found.items() if each.kind != each.KEYWORD_ONLY]
    given = [each.arg for each in function.args.args]
    assert given == positional[:len(given)]
    if function.args.kwonlyargs:
        assert [*given, *(each.arg for each in function.args.kwonlyargs)] == list(found)


def ours(code: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(code)) if (
        (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "microtron")
        or (isinstance(node, ast.Import) and any(each.name.split(".")[0] == "microtron"
                                                for each in node.names)))]


def readers() -> list[tuple[str, str]]:
    """Places where people look for examples, and the Python there."""
    pages = {str(page.relative_to(ROOT)): code
             for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
             if (code := "\n".join(PYTHON.findall(page.read_text(encoding="utf-8"))))}
    scripts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
               for path in sorted((ROOT / "examples").rglob("*.py"))}
    return list({**pages, **scripts}.items())


def extensions() -> list[str]:
    table = PAGE.partition("## Extension points")[2].partition("## Internal")[0]
    return [f"microtron.{each}" for row in re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
            for each in re.findall(r"`([\w.]+)`", row)]


@pytest.mark.parametrize(("place", "code"), readers(), ids=[name for name, _ in readers()])
def test_readme_pages_and_examples_import_what_is_public(place, code):
    for node in ours(code):
        modules = ([node.module] if isinstance(node, ast.ImportFrom)
                   else [each.name for each in node.names])
        for module in modules:
            extends = place in EXTENDING and any(
                module == each or module.startswith(f"{each}.") for each in extensions())
            assert module == "microtron" or extends, f"{place} imports {module}"
            if module == "microtron" and isinstance(node, ast.ImportFrom):
                assert {each.name for each in node.names} <= set(microtron.__all__)


FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(microtron, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_explicit_keywords(name):
    kinds = {each.kind for each in inspect.signature(getattr(microtron, name)).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_misspelt_keyword_is_answered_with_the_right_one(name):
    *_, right = inspect.signature(getattr(microtron, name)).parameters
    with pytest.raises(TypeError, match=rf"^{name}\(\) has no keyword '{right}s'; did you mean "
                                        rf"{right}\?$"):
        getattr(microtron, name)(**{f"{right}s": 1})


@pytest.mark.parametrize("kind", [
    getattr(microtron, name) for name in NAMES if inspect.isclass(getattr(microtron, name))
    and issubclass(getattr(microtron, name), KeywordsChecked)])
def test_a_misspelt_field_is_answered_with_the_right_one(kind):
    *_, right = inspect.signature(kind).parameters
    with pytest.raises(microtron.MicrotronError, match=f"^{kind.__name__} has no keyword "
                                                       f"'{right}s'; did you mean {right}"):
        kind(**{f"{right}s": 1})


def test_descriptions_configurations_and_jobs_check_their_keywords():
    checked = {*OPERATORS, microtron.Config, microtron.MemoryTiming, microtron.Job}
    assert all(issubclass(each, KeywordsChecked) for each in checked)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: microtron.compile(3), "model is 3, but must be a Graph or the path of a"),
    (lambda: microtron.compile("a.onnx", cost="guess"), "cost is 'guess', but must be a function"),
    (lambda: microtron.compile("a.onnx", cost=3), "cost is 3, but must be a function from a Prog"),
    (lambda: microtron.compile("a.onnx", shapes=[1]), r"shapes is \[1\], but must be a mapping"),
    (lambda: microtron.compile_op(3), "int is not an operator; there are Conv2d"),
    (lambda: microtron.inspect("a.mt"), "model is 'a.mt', but must be a Model"),
    (lambda: microtron.show(3), "report is 3, but must be a Report, a Profile or an Inspection"),
    (lambda: microtron.simulated_cost("slow"), "memory is 'slow', but must be a MemoryTiming"),
    (lambda: microtron.bound_of(microtron.Dense(rows=1, inputs=9, outputs=9), "tiny", "slow"),
     "memory is 'slow', but must be a MemoryTiming"),
    (lambda: microtron.load_program("nowhere.asm"), "nowhere.asm: cannot be read: No such file"),
    (lambda: microtron.load("nowhere.mt"), "nowhere.mt"),
    (lambda: microtron.load(3), "path is 3, but must be the path of a file"),
    (lambda: microtron.load_program("a\0b"), r"path is 'a\\x00b', but must be the path of a file"),
    (lambda: microtron.save_program(3, "x.mt"), "program is 3, but must be a Program, as load"),
    (lambda: microtron.assemble(3), "text is 3, but must be a string"),
    (lambda: microtron.disassemble(3), "program is 3, but must be a Program"),
    (lambda: microtron.verify(3), "program is 3, but must be a Program"),
    (lambda: microtron.load_config(3), "configuration is 3, but must be the name of a preset or"),
    (lambda: microtron.save_config(3, "x.toml"), "config is 3, but must be a Config"),
    (lambda: microtron.read_model(3), "path is 3, but must be the path of a file"),
    (lambda: microtron.read_model("a.onnx", shapes=3), "shapes is 3, but must be a mapping"),
    (lambda: microtron.compile("a.onnx", progress=3), "progress is 3, but must be a function"),
    (lambda: microtron.compile("a.onnx", observe="x"), "observe is 'x', but must be a function"),
    (lambda: microtron.open_device("rtl", waveform=3), "waveform is 3, but must be the path of"),
    (lambda: microtron.quantize_scale("x"), "scale is 'x', but must be from 0 to 2147483647"),
    (lambda: microtron.Adversarial("x"), "seed is 'x', but must be an integer"),
])
def test_wrong_arguments_are_refused_in_one_line(call, message):
    with pytest.raises(microtron.MicrotronError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_estimates_decide_without_simulating_if_asked(monkeypatch):
    layer = microtron.Dense(rows=1, inputs=9, outputs=9)
    asked = []
    monkeypatch.setattr("microtron.runtime.api.simulated_cost", lambda memory: asked.append)
    program = microtron.compile_op(layer, "tiny", cost="estimate").program
    assert microtron.verify(program).instructions == len(program.code)
    assert not asked
    with pytest.raises(TypeError):          # what is asked for the cycles has no answer
        microtron.compile_op(layer, "tiny")
    assert asked


def test_every_schedule_of_the_design_space_compiles():
    layer = microtron.Dense(rows=3, inputs=9, outputs=9)
    found = list(microtron.schedules_of(layer, "tiny"))
    assert len({str(each) for each in found}) == len(found) > 1
    least = microtron.bound_of(layer, "tiny").cycles
    for form, knobs in found[::5]:
        kernel = microtron.compile_op(layer, "tiny", form=form, knobs=knobs, cost="estimate")
        assert kernel.knobs == knobs
        assert microtron.simulate(kernel.program).cycles >= least


def test_programs_are_saved_loaded_and_shown(tmp_path, capsys):
    program = microtron.load_program(ROOT / "examples" / "matmul.asm")
    microtron.save_program(program, tmp_path / "matmul.mt")
    again = microtron.load_program(str(tmp_path / "matmul.mt"))
    assert microtron.disassemble(again) == microtron.disassemble(program)
    microtron.show(microtron.simulate(again), "matmul")
    microtron.show(microtron.profile(again))
    printed = capsys.readouterr().out
    assert "matmul" in printed
    assert f"{microtron.simulate(again).cycles:,}" in printed
