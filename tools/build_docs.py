"""Builds the documentation's site: the pages of docs/, and those that are read off the code.

    python tools/build_docs.py [FOLDER]         # build/docs unless told

Pages are copied to build/docs_source with links that a site can follow; index.md becomes its
navigation. Sphinx makes HTML of them, warnings are errors, and a page that loads anything from the
network is refused.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

from docs_reference import api_page, command_page
from write_notebooks import write_notebooks

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
COPIED = ("*.md", "*.png", "*.svg", "conf.py", "tutorials/*.md", "tutorials/*.svg",
          "tutorials/*.png")
ABOVE = ("CONTRIBUTING.md", "CHANGELOG.md")         # pages that are beside docs/
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]+)?\)")
EXTERNAL = re.compile(r"^(?:https?:)?//", re.IGNORECASE)
LOADED_BY_CSS = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")\s]+)""",
                           re.IGNORECASE)
GENERATED = {"reference/commands.md": command_page, "reference/python.md": api_page}


def main() -> int:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"
    source = output.parent / f"{output.name}_source"
    stage(source)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b",
                           "html", str(source), str(output)], check=False)
    if done.returncode:
        return done.returncode
    write_notebooks(output / "notebooks")
    loaded = sorted(external_loads(output))
    for page, address in loaded:
        print(f"{page}: loads {address}, but the site must work offline", file=sys.stderr)
    if not loaded:
        print(f"{output / 'index.html'}: {len(list(output.rglob('*.html')))} pages")
    return 1 if loaded else 0


def stage(source: Path) -> None:
    """Copy and write all pages."""
    shutil.rmtree(source, ignore_errors=True)
    for pattern in COPIED:
        for path in sorted(DOCS.glob(pattern)):
            target = source / path.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                text = path.read_text(encoding="utf-8")
                target.write_text(adapt(text, path.relative_to(ROOT)), encoding="utf-8")
            else:
                shutil.copy(path, target)
    for name in ABOVE:
        text = (ROOT / name).read_text(encoding="utf-8")
        (source / name).write_text(adapt(text, Path(name)), encoding="utf-8")
    for name, write in GENERATED.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(write(), encoding="utf-8")
    index = source / "index.md"
    index.write_text(with_navigation(index.read_text(encoding="utf-8")), encoding="utf-8")


def adapt(text: str, page: Path) -> str:
    """A page of the repository as one of the site: links to sources become their names."""
    folder = PurePosixPath("docs") if page.parts[0] == "docs" else PurePosixPath()
    here = PurePosixPath(*page.parts[len(folder.parts):-1])

    def link_to_page(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if EXTERNAL.match(target) or target.startswith("mailto:"):
            return found[0]
        path = normalize(PurePosixPath(*page.parts[:-1]) / target)
        inside = path.relative_to("docs") if path.parts[0] == "docs" else path
        if str(path) == "README.md":
            inside = PurePosixPath("index.md")
        if inside.suffix != ".md":
            return label
        return f"[{label}]({'/'.join(['..'] * len(here.parts) + [str(inside)])}{anchor})"

    return LINK.sub(link_to_page, text)


def normalize(path: PurePosixPath) -> PurePosixPath:
    """A path without .. inside."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return PurePosixPath(*parts)


def with_navigation(text: str) -> str:
    """The index with a table of contents for each of its sections: the pages that it links to."""
    found = [text]
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = section.partition("\n")
        pages = dict.fromkeys(target.removesuffix(".md") for _, target, _ in LINK.findall(rest)
                              if target.endswith(".md"))
        if title == "Reference":
            pages |= dict.fromkeys(name.removesuffix(".md") for name in GENERATED)
        if pages:
            found.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n"
                         + "\n".join(pages) + "\n```\n")
    return "\n".join(found)


def external_loads(folder: Path) -> Iterator[tuple[str, str]]:
    """Pages and style sheets of a site, with addresses elsewhere that a browser would load."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".html":
            loads = _Loads()
            loads.feed(path.read_text(encoding="utf-8"))
            yield from ((name, each) for each in loads.found)
        elif path.suffix in (".css", ".svg"):
            yield from ((name, each) for each
                        in LOADED_BY_CSS.findall(path.read_text(encoding="utf-8")))


class _Loads(HTMLParser):
    """What a page loads from elsewhere. A link that people may follow is no load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_style = tag == "style"
        for name, value in attrs:
            if name == "style" and value:
                self.found += LOADED_BY_CSS.findall(value)
            elif (name in ("src", "srcset", "data", "poster") or (name == "href" and tag != "a")
                  ) and value and EXTERNAL.match(value):
                self.found.append(value)

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.found += LOADED_BY_CSS.findall(data)


if __name__ == "__main__":
    sys.exit(main())
