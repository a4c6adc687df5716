"""The model image: round trips, and files from people who mean harm."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtron
from microtron.base.errors import ImageError, MicrotronError
from microtron.compiler.graph import types
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.image import program_image, sections
from microtron.isa.image.sections import Section, pack, unpack
from microtron.isa.instructions import Rounding
from microtron.isa.program import SEGMENT_BYTES_LIMIT
from microtron.runtime.models import model_checks, model_image, model_text
from microtron.runtime.models.compiled_model import CompiledModel
from microtron.runtime.models.model import Model
from microtron.runtime.models.model_image import from_bytes, holds_model, load, to_bytes

from ...compiler.graph.random_graphs import networks, random_inputs
from ..small_model import image, small_graph

MODEL = microtron.compile(small_graph(), "tiny")
IMAGE = to_bytes(MODEL)
TEXT, PROGRAMS, ARRAYS = unpack(np.frombuffer(IMAGE, np.uint8))
DATA = json.loads(TEXT.content.tobytes())


def odd_graph(odd):
    """Two layers whose names have something odd in them."""
    builder = Builder(odd)
    builder.input(f"x{odd}", TensorType((1, 4), "int8", Quantization((0.1,))))
    for number, name in enumerate((f"{odd}y", f"{odd}z")):
        weights = builder.constant(f"w{number}", np.full((4, 4), number + 1, np.int8),
                                   Quantization((0.1,)))
        builder.add(name, MatMul(left=f"{odd}y" if number else f"x{odd}", right=weights,
                                 scales=(0.5,), rounding=Rounding.TWICE), dtype="int8",
                    quantization=Quantization((0.1,)))
    return builder.graph((f"{odd}z",))


@pytest.mark.parametrize("odd", ["\x1b[31m", "a\nb", "\0", "\u202e", "\xa0", "\U000e0001",
                                 "n" * 3000])
def test_models_with_any_names_are_saved(odd, tmp_path):
    model = microtron.compile(odd_graph(odd), "tiny")
    assert len(model.programs[0].labels) == 2
    model.save(tmp_path / "odd.mt")
    again = microtron.load(tmp_path / "odd.mt")
    assert list(again.inputs) == [f"x{odd}"]
    inputs = {f"x{odd}": np.arange(4, dtype=np.int8)[None]}
    assert again.run(inputs)[f"{odd}z"].tolist() == model.run(inputs)[f"{odd}z"].tolist()
    assert len(microtron.inspect(again).layers) == 2


def repacked(text=None, programs=None, arrays=None):
    """The sample with some sections replaced, and the right checksum."""
    def content(given, section):
        return section.content if given is None else np.frombuffer(given, np.uint8)
    return pack([Section("model", content(text, TEXT), 1),
                 Section("programs", content(programs, PROGRAMS)),
                 Section("arrays", content(arrays, ARRAYS), 64)])


def canonical(data):
    return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def changed(change):
    """The sample with something else in its text."""
    data = json.loads(TEXT.content.tobytes())
    change(data)
    return repacked(canonical(data))


def refuses(message):
    return pytest.raises(ImageError, match=f"^image: {message}")


def test_a_model_comes_back_as_it_was(tmp_path):
    path = tmp_path / "model.mt"
    MODEL.save(path)
    assert path.read_bytes() == IMAGE
    for loaded in (microtron.load(path), Model(**vars(load(path, mapped=False)))):
        assert to_bytes(loaded) == IMAGE
        assert loaded.nodes == MODEL.nodes
        assert loaded.inputs == MODEL.inputs
        assert loaded.outputs == MODEL.outputs
        assert loaded.config == MODEL.config
        assert loaded.memory == MODEL.memory
        assert loaded.provenance == MODEL.provenance
        for seed in range(2):
            one, other = loaded.run(image(seed)), MODEL.run(image(seed))
            assert one.cycles == other.cycles
            for name in MODEL.outputs:
                assert np.array_equal(one[name], other[name])


@given(networks(), st.integers(0, 9))
@settings(max_examples=8)
def test_any_network_comes_back_as_it_was(graph, seed):
    model = microtron.compile(graph, "tiny", cost=None)
    loaded = from_bytes(to_bytes(model))
    assert to_bytes(loaded) == to_bytes(model)
    inputs = random_inputs(graph, seed)
    one, other = (each.run(inputs, "functional") for each in (model, Model(**vars(loaded))))
    for name in model.outputs:
        assert np.array_equal(one[name], other[name])


def test_outputs_that_are_constant_or_inputs_are_kept():
    builder = Builder()
    builder.input("x", TensorType((2,), "int8", Quantization((0.5,))))
    builder.constant("c", np.array([True, False]))
    model = microtron.compile(builder.graph(("x", "c")), "tiny")
    loaded = Model(**vars(from_bytes(to_bytes(model))))
    result = loaded.run(np.array([1, 2], np.int8))
    assert result["x"].tolist() == [1, 2]
    assert result["c"].tolist() == [True, False]


def test_models_and_programs_are_told_apart(tmp_path):
    MODEL.save(tmp_path / "model.mt")
    program_image.save(MODEL.programs[0], tmp_path / "program.mt")
    (tmp_path / "text.mt").write_text("text")
    assert holds_model(tmp_path / "model.mt")
    for other in ("program.mt", "text.mt", "nothing.mt", "a\0b"):
        assert not holds_model(tmp_path / other)
    assert not holds_model(tmp_path)
    with pytest.raises(ImageError, match=r"model\.mt: holds a model, not a single program"):
        program_image.load(tmp_path / "model.mt")
    with pytest.raises(ImageError, match=r"program\.mt: holds a single program, not a model"):
        microtron.load(tmp_path / "program.mt")
    with pytest.raises(ImageError, match=r"text.mt: is not a program image"):
        microtron.load(tmp_path / "text.mt")
    with pytest.raises(ImageError, match=r"nothing.mt: cannot be read: No such file"):
        microtron.load(tmp_path / "nothing.mt")


def test_what_was_there_stays_until_a_new_image_is_complete(tmp_path):
    path = tmp_path / "model.mt"
    path.write_bytes(b"before")
    broken = CompiledModel(**{**vars(MODEL), "outputs": {}})
    with pytest.raises(ImageError, match="the model cannot be stored: the model has no output"):
        model_image.save(broken, path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["model.mt"]


def at(data, *way):
    for each in way:
        data = data[each]
    return data


def setting(*way):
    """A change: the value at the end of a way through the text."""
    *before, last, value = way
    return lambda data: at(data, *before).__setitem__(last, value)


FIRST = ("steps", 0, "inputs", 0)
STAGE = (*FIRST, "layout", "stages", 0)
OUTPUT = ("steps", 0, "outputs", 0)


@pytest.mark.parametrize(("change", "message"), [
    (lambda data: data.pop("name"), "model: fields are .*, but must be"),
    (setting("extra", 1), "model: fields are"),
    (setting("name", 7), "name: 7 must be text"),
    (setting("config", "batch", 3), "config: batch is 3, but must be a power of two"),
    (setting("config", "batch", 2), "step 0: its program is for another configuration"),
    (setting("memory", "read_latency", 0), "memory: .*read_latency is 0"),
    (setting("inputs", []), "step 0 reads image, which is not computed before"),
    (setting("inputs", 3), "inputs: 3 must be a list"),
    (lambda data: data["inputs"].append(data["inputs"][0]), "inputs: there are two of the name im"),
    (setting("inputs", 0, "type", "dtype", "int16"), "step 0 reads image as int8"),
    (setting("inputs", 0, "type", "dtype", "text"), "inputs: image: type is 'text'"),
    (setting("outputs", []), "the model has no output"),
    (setting("outputs", 0, "name", "nobody"), "outputs reads nobody, which is not computed"),
    (lambda data: data["steps"].reverse(), "."),
    (lambda data: data["steps"].pop(), "."),
    (lambda data: data["steps"].append(data["steps"][0]), "section programs has"),
    (setting("steps", 0, 5), "."),
    (setting("steps", 0, "program", 5), "section programs has"),
    (setting("steps", 0, "program", -5), "step 0: program is -5, but must be a whole number"),
    (setting("arrays", [1, 2]), "section arrays has 256 bytes, but what it holds takes"),
    (setting("arrays", [256, 0]), "1 of 2 arrays belong to no graph"),
    (setting("arrays", []), "section arrays has 256 bytes"),
    (setting(*FIRST, "name", "nothing"), "there is no tensor 'nothing'"),
    (setting(*FIRST, "tensor", "conv"), "step 0 reads conv, which is not computed before"),
    (setting(*FIRST, "layout", "stages", []), "step 0: image: its layout has no stage"),
    (setting(*STAGE, "steps", 0, [0, -1]), ".*a stage has the step -1 along axis 0"),
    (setting(*STAGE, "steps", 0, [9, 1]), ".*a stage has the step 1 along axis 9"),
    (setting(*STAGE, "steps", 0, [0, 1 << 60]), "step 0: image: a stage of its layout moves fart"),
    (setting(*STAGE, "steps", []), ".*dimensions has 4 starts and 0 steps"),
    (setting(*STAGE, "starts", [-(1 << 40), 0, 0, 0]), "step 0: image: a stage of its layout "
                                                         "takes .* on the way, which is too much"),
    (setting(*STAGE, "starts", [1 << 40, 0, 0, 0]), "step 0: image: a stage of its layout takes"),
    (setting(*STAGE, "source", [1, 1, 1, 1]), "step 0: image: a stage of its layout takes 1 ele"),
    (setting(*STAGE, "fill", 1000), "step 0: image: its layout fills up with 1000"),
    (setting(*OUTPUT, "layout", "stages", 0, "starts", [0, 0, 0, 1]),
     "step 0: .*some elements of axis 3 are not in there"),
    (setting(*OUTPUT, "tensor", "image"), "."),
    (setting("steps", 0, "plan", "peak", 1.5), "step 0: peak is 1.5, but must be a whole number"),
    (setting("steps", 0, "plan", "offsets", 3), "step 0: offsets: 3 must be an object"),
    (setting("steps", 1, "graph", "nodes", 0, "operation", "operator", "System"),
     "node table_of: operation: there is no operation 'System'"),
    (setting("steps", 1, "graph", "constants", 0, "array", 7), "step 1: there are 8 arrays or m"),
    (setting("steps", 1, "graph", 3), "step 1: 3 must be an object"),
    (setting("nodes", 0, "where", "MOON"), "node 0: where: 'MOON' must be one of"),
    (setting("nodes", 0, "where", "CPU"), "node conv: runs on the cpu, but its step does not"),
    (setting("nodes", 0, "step", 99), "node conv: runs in step 99 of 4"),
    (setting("nodes", 0, "label", "nowhere"), "node conv: begins at nowhere, which its program"),
    (setting("nodes", 0, "macs", -1), "node conv: has -1 multiply-adds"),
    (setting("provenance", "model", 3), "provenance model: 3 must be text"),
    (lambda data: data["nodes"][0].pop("note"), "section model: not in canonical form: a field is"),
    (lambda data: data["constants"].update(name="x"), "section model: not in canonical form"),
])
def test_hostile_texts_are_refused(change, message):
    with refuses(message) as refusal:
        from_bytes(changed(change))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("text", "message"), [
    (b"", "section model: Expecting value"),
    (b"[]", r"model: \[\] must be an object"),
    (b"[" * 100_000, "section model: nested too deeply"),
    (b'{"a":' * 50_000, "section model: nested too deeply"),
    (b"\xff", "section model: 'utf-8' codec"),
    (b'"\\ud800"', "section model: 'utf-8' codec can't encode"),
    (b"9" * 30, "section model: '999.*' is no number of 64 bits"),
    (b"NaN", "section model: 'NaN' is no number"),
    (b"1e999", "section model: Out of range float"),
    (TEXT.content.tobytes() + b" ", "section model: not in canonical form"),
    (b'{"a":1,"a":1}', "section model: not in canonical form"),
    (b" " * ((16 << 20) + 1), "section model has 16777217 bytes, but at most 16777216"),
])
def test_texts_that_are_none_are_refused(text, message):
    with refuses(message):
        from_bytes(repacked(text))


def test_sections_must_be_as_documented():
    with refuses("has no section programs"):
        from_bytes(pack([TEXT, ARRAYS]))
    with refuses("section arrays has alignment 4096"):
        from_bytes(pack([TEXT, PROGRAMS, Section("arrays", ARRAYS.content)]))
    later = Section("later", np.zeros(3, np.uint8), 1)
    with refuses("needs its section later, which this program does not know"):
        from_bytes(pack([TEXT, PROGRAMS, ARRAYS, later]))
    passed = pack([TEXT, PROGRAMS, ARRAYS, Section("later", np.zeros(3, np.uint8), 1, False)])
    assert to_bytes(from_bytes(passed)) == IMAGE
    programs = PROGRAMS.content.copy()
    size = DATA["steps"][0]["program"]
    assert size % sections.PAGE, "there is room after the first program"
    programs[size] = 1
    with refuses(f"section programs: the bytes from {size} to"):
        from_bytes(repacked(programs=programs.tobytes()))
    programs = PROGRAMS.content.copy()
    programs[70] ^= 1
    with refuses("program 0: is damaged"):
        from_bytes(repacked(programs=programs.tobytes()))


def resigned(data):
    """Any bytes, with the right size and checksum."""
    data = bytearray(data)
    data[16:24] = len(data).to_bytes(8, "little")
    data[32:64] = hashlib.sha256(data[:32] + data[64:]).digest()
    return bytes(data)


def outcome(data):
    """Whether an image is refused, in one line; a model that is not, runs or says why not."""
    try:
        loaded = Model(**vars(from_bytes(data)))
    except ImageError as error:
        return one_line(error, "refused")
    try:
        inputs = {name: np.zeros(type_.shape, type_.dtype) for name, type_ in loaded.inputs.items()}
        loaded.run(inputs, "functional", limit=100_000)
    except MicrotronError as error:
        return one_line(error, "stopped")
    return "ran"


def one_line(error, outcome):
    assert "\n" not in str(error)
    assert len(str(error)) < 2500
    return outcome


def test_every_flipped_bit_is_noticed():
    rng = random.Random(1)
    for _ in range(300):
        data = bytearray(IMAGE)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        assert outcome(data) == "refused"


def test_every_truncation_is_noticed():
    for size in (*range(0, len(IMAGE), 97), len(IMAGE) - 1):
        assert outcome(IMAGE[:size]) == "refused"
        if size >= 64:
            assert outcome(resigned(IMAGE[:size])) == "refused"


ODD = [None, True, -1, 0, 1, 2, 7, 1 << 31, 1 << 62, -(1 << 63), 0.5, 1e300, "", "x", "image",
       "conv", "inf", "nan", [], [0], [1, 2, 3], {}, {"name": "x"}, "CPU", "é\n\x00"]


def places(data, way=()):
    """All places in a text."""
    items = (data.items() if isinstance(data, dict) else enumerate(data)
             if isinstance(data, list) else ())
    for key, value in items:
        yield (*way, key)
        yield from places(value, (*way, key))


def altered(number, everywhere):
    """The text with odd values in places that a number decides on: one place each for the first
    numbers, then two."""
    rng = random.Random(number)
    data = json.loads(TEXT.content.tobytes())
    for way in [everywhere[number]] if number < len(everywhere) else rng.sample(everywhere, 2):
        try:
            holder = at(data, *way[:-1])
            if rng.random() < 0.15:
                del holder[way[-1]]
            elif isinstance(holder[way[-1]], int) and rng.random() < 0.5:
                holder[way[-1]] += rng.choice((-1, 1))
            else:
                holder[way[-1]] = rng.choice(ODD)
        except (KeyError, IndexError, TypeError):
            continue                # the first change took the place of the second away
    return canonical(data)


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.soak)])
def test_a_text_with_anything_anywhere_is_refused_or_runs(step):
    everywhere = list(places(DATA))
    found = [outcome(repacked(altered(number, everywhere)))
             for number in range(0, 2 * len(everywhere), step)]
    assert found.count("refused") > len(found) // 2
    assert found.count("ran") > 3


def test_bytes_anywhere_are_refused_or_run():
    found = []
    for seed in range(100):
        rng = random.Random(seed)
        data = bytearray(IMAGE)
        for _ in range(rng.choice((1, 1, 2, 5))):
            data[rng.randrange(64, len(data))] = rng.randrange(256)
        found.append(outcome(resigned(data)))
    assert found.count("refused") > 70


def test_a_small_file_takes_little_memory():
    """Also if it claims to hold the largest tensors there are."""
    def claim(data):
        for place in (data["inputs"][0]["type"], data["steps"][0]["inputs"][0]["type"]):
            place["shape"] = [1 << 30]
    tracemalloc.start()
    assert outcome(changed(claim)) == "refused"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "model_image.md").read_text(encoding="utf-8")


def rows(heading):
    """First and second cells of the table that follows some words on the page."""
    text = PAGE.partition(heading)[2].partition("\n|---")[2].partition("\n\n")[0]
    return {name.strip("`"): cell for name, cell in
            re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", text, re.MULTILINE)}


def test_the_page_names_every_key_section_and_limit():
    assert set(rows("exactly these keys:")) == set(DATA)
    assert rows("tells the two apart.") == {
        name: str(alignment) for name, alignment in model_image.ALIGNMENTS.items()}
    limits = rows("readers accept any other keys.")
    assert int(limits["bytes of `model"]) == model_text.TEXT_LIMIT
    assert int(limits["steps"]) == model_text.STEPS_LIMIT
    assert int(limits["bytes of a piece, an offset or a plan"]) == SEGMENT_BYTES_LIMIT
    assert int(limits["elements of a tensor"]) == types.LARGEST
    assert int(limits["axes of a tensor"]) == types.MOST_AXES
    way = limits["elements that a layout takes on the way"]
    assert way == f"{model_checks.FACTOR} for each of the tensor or its tiles, and " \
                  f"{model_checks.ROOM}"


@pytest.mark.parametrize("field", [*DATA["nodes"][0], *DATA["steps"][0], *DATA["steps"][0]["plan"],
                                   *DATA["steps"][0]["inputs"][0], *DATA["inputs"][0]["type"],
                                   *DATA["steps"][0]["inputs"][0]["layout"]["stages"][0],
                                   *DATA["steps"][1]["graph"], *DATA["provenance"]])
def test_the_page_names_every_field(field):
    assert f"`{field}`" in PAGE
