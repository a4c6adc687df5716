"""The documentation's site: links lead somewhere, the reference is whole, nothing is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import microtron
from microtron.testing.browser import open_browser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import build_docs
        return build_docs
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.mark.parametrize(("page", "text", "adapted"), [
    ("docs/a.md", "[x](b.md#c)", "[x](b.md#c)"),
    ("docs/a.md", "[x](../isa/config.py)", "x"),
    ("docs/a.md", "[x](../README.md) [y](../CONTRIBUTING.md)",
     "[x](index.md) [y](CONTRIBUTING.md)"),
    ("docs/a.md", "[x](https://example.org/a.md)", "[x](https://example.org/a.md)"),
    ("docs/a.md", "![x](report.png)", "![x](report.png)"),
    ("docs/tutorials/a.md", "[x](../isa.md) [y](b.md)", "[x](../isa.md) [y](../tutorials/b.md)"),
    ("CONTRIBUTING.md", "[x](docs/isa.md)", "[x](isa.md)"),
])
def test_links_lead_to_pages_of_the_site(tool, page, text, adapted):
    assert tool.adapt(text, Path(page)) == adapted


@pytest.mark.parametrize(("name", "text", "loaded"), [
    ("a.html", '<script src="https://cdn.example/x.js"></script>', ["https://cdn.example/x.js"]),
    ("a.html", '<link rel="stylesheet" href="//fonts.example/f">', ["//fonts.example/f"]),
    ("a.html", '<img src="x.png"><a href="https://example.org">x</a>', []),
    ("a.html", "<style>b{background:url(https://x.example/y)}</style>", ["https://x.example/y"]),
    ("a.html", '<p style="background:url(http://x.example/y)">', ["http://x.example/y"]),
    ("a.css", '@import "https://x.example/f.css";', ["https://x.example/f.css"]),
    ("a.css", "b { src: url(font.woff2) }", []),
    ("a.css", "b { src: url('data:image/svg+xml,<svg xmlns=\"http://www.w3.org\">') }", []),
])
def test_what_a_page_loads_from_elsewhere_is_found(tool, name, text, loaded, tmp_path):
    (tmp_path / name).write_text(text)
    assert [each for _, each in tool.external_loads(tmp_path)] == loaded


def test_the_navigation_has_every_page(tool):
    text = tool.with_navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    found = {each for block in re.findall(r"```\{toctree\}(.*?)```", text, re.DOTALL)
             for each in block.split() if not each.startswith(":")}
    pages = {str(path.relative_to(ROOT / "docs").with_suffix(""))
             for pattern in ("*.md", "*/*.md") for path in (ROOT / "docs").glob(pattern)}
    assert pages - {"index"} <= found


def test_the_reference_has_every_command_option_and_name(tool):
    commands = tool.command_page()
    for words in ("microtron compile", "`--dump-passes DIR`", "microtron kernel conv2d",
                  "`--height"):
        assert words in commands
    names = tool.api_page()
    for name in set(microtron.__all__) - {"__version__"}:
        assert f"\n## {name}\n" in names


@pytest.mark.soak
def test_the_site_is_built_searched_and_read_without_a_network(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "tools" / "build_docs.py", tmp_path / "site"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open_browser() as page:
        page.open(tmp_path / "site" / "index.html")
        page.wait_for("document.readyState == 'complete'")
        assert "Microtron" in page.evaluate("document.title")
        page.evaluate(f"location.href = {str((tmp_path / 'site' / 'search.html').as_uri())!r}"
                      " + '?q=roofline'")
        page.wait_for("document.querySelectorAll('#search-results li').length > 1")
        assert not page.errors
        assert all(each.startswith(("file:", "data:")) for each in page.requests)
