"""Views of waveforms, in the forms that GTKWave and Surfer read."""

from __future__ import annotations

import io

from vcd.gtkw import GTKWSave

from microtron.isa.instructions import Engine
from microtron.runtime.devices.waveform_view import (
    gtkwave_view,
    signal_groups,
    surfer_view,
    write_views,
)


def test_the_view_is_what_another_writer_of_the_format_writes(tmp_path):
    content = io.StringIO()
    view = GTKWSave(content)
    view.dumpfile("run.fst", abspath=False)
    view.timestart(0)
    for name, signals in signal_groups().items():
        with view.group(name):
            for each in signals:
                view.trace(f"top.{each}", datafmt="dec" if "[" in each else "bin")
    assert gtkwave_view(tmp_path / "run.fst") == content.getvalue()


def test_surfer_shows_the_same_groups_and_positions_as_numbers(tmp_path):
    """As Surfer reads a command file: lines of a command and one word, items in rising order."""
    first, *lines = surfer_view(tmp_path / "run.fst").splitlines()
    assert first == "load_file run.fst"
    items, groups, numbers, focus = [], {}, set(), None
    for line in lines:
        command, *words = line.split(" ")
        match command:
            case "divider_add":
                items.append(words[0])
                groups[words[0]] = []
            case "variable_add":
                items.append(words[0])
                groups[list(groups)[-1]].append(words[0])
            case "item_focus":
                digits = "".join(f"{ord(letter) - ord('a'):x}" for letter in words[0])
                focus = items[int(digits, 16)]
            case "item_set_format":
                assert words == ["Unsigned"]
                numbers.add(focus)
            case _:
                assert (command, words) in (("item_unfocus", []), ("zoom_fit", []))
    wanted = signal_groups()
    assert {name.replace(" ", "_"): [f"top.{each.partition('[')[0]}" for each in signals]
            for name, signals in wanted.items()} == groups
    assert numbers == {f"top.{each.partition('[')[0]}" for signals in wanted.values()
                       for each in signals if "[" in each} != set()


def test_every_engine_has_a_group():
    assert {each.name.lower() for each in Engine} <= set(signal_groups())


def test_a_view_that_somebody_arranged_stays(tmp_path):
    waveform = tmp_path / "run.fst"
    assert write_views(waveform) == [tmp_path / "run.gtkw", tmp_path / "run.sucl"]
    for ending in ("gtkw", "sucl"):
        (tmp_path / f"run.{ending}").write_text("mine")
    assert write_views(waveform) == []
    assert {(tmp_path / f"run.{ending}").read_text() for ending in ("gtkw", "sucl")} == {"mine"}
