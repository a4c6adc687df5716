"""Every message in docs/faq.md is one that its block gives, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import microtron

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^## `([^\n]+)`\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_section_is_a_message_with_a_block():
    assert len(ENTRIES) == PAGE.count("\n## ") >= 12


@pytest.mark.parametrize(("message", "code"), ENTRIES, ids=[each[:40] for each, _ in ENTRIES])
def test_every_block_gives_its_message(message, code, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MICROTRON_ANEW", raising=False)
    with pytest.raises(microtron.MicrotronError) as error:
        exec(compile(code, "faq.md", "exec"), {"microtron": microtron})
    pattern = ".+".join(map(re.escape, message.split("…")))
    assert re.fullmatch(pattern, str(error.value)), error.value
