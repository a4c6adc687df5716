"""Views of waveforms, in the form that GTKWave reads."""

from __future__ import annotations

import io

from vcd.gtkw import GTKWSave

from microtron.isa.instructions import Engine
from microtron.runtime.devices.waveform_view import gtkwave_view, signal_groups, write_view


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


def test_every_engine_has_a_group():
    assert {each.name.lower() for each in Engine} <= set(signal_groups())


def test_a_view_that_somebody_arranged_stays(tmp_path):
    waveform = tmp_path / "run.fst"
    assert write_view(waveform) == tmp_path / "run.gtkw"
    (tmp_path / "run.gtkw").write_text("mine")
    assert write_view(waveform) is None
    assert (tmp_path / "run.gtkw").read_text() == "mine"
