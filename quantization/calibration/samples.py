"""Samples for calibration, one at a time: from .npz files, folders of .npy or .npz files, or any
Python iterable. They need not fit in memory."""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from ...base.checked_values import list_names, quote, show_name
from ...base.errors import MicrotronError
from ...compiler.graph.types import TensorType
from ..parameters import Array

Inputs = Mapping[str, TensorType]
Sample = dict[str, Array]
Given = TypeVar("Given")
MOST_BYTES = 1 << 31            # of one array that is not read row by row
REMEMBERED = 64 << 20           # bytes of samples that are not read again


class Samples:
    """Samples that can be gone through several times, each checked against the model's inputs."""

    def __init__(self, inputs: Inputs, source: Callable[[], Iterator[Sample]], place: str,
                 count: int | None = None, *, random: bool = False) -> None:
        self.inputs, self.place, self.random = inputs, place, random
        self._source, self._most = source, count
        self.labels: int | None = None          # how many there are, if any: one for each sample
        self._first: list[Sample] = []          # as many as are remembered
        self._room, self._has_all = REMEMBERED, False

    def __iter__(self) -> Iterator[Sample]:
        """Samples that are small are the same objects each time."""
        number = -1
        for number, sample in enumerate(self._first if self._has_all else self._source()):
            if self._most is not None and number >= self._most:
                return
            yield self._first[number] if number < len(self._first) else self._check(number, sample)
        self._has_all = number + 1 == len(self._first)
        if number < 0:
            raise MicrotronError(f"{self.place}: there is no sample")
        if self.labels not in (None, number + 1):
            raise MicrotronError(f"there are {self.labels} labels, but {number + 1} samples")

    def _check(self, number: int, sample: Sample) -> Sample:
        """The arrays of a sample as inputs take them."""
        checked = {name: check_array(f"{self.place}, sample {number}", name, sample[name], type_)
                   for name, type_ in self.inputs.items()}
        size = sum(array.nbytes for array in checked.values())
        if number == len(self._first) and size <= self._room:
            self._first.append(checked)
            self._room -= size
        return checked

    def first(self, count: int) -> Samples:
        """At most so many of them."""
        most = count if self._most is None else min(count, self._most)
        return Samples(self.inputs, self._source, self.place, most, random=self.random)


def check_array(place: str, name: str, array: object, type_: TensorType) -> Array:
    """A sample's array in exactly the type of its input, or why that cannot be."""
    try:
        array = np.asarray(array)
    except ValueError:
        raise MicrotronError(f"{place}: {show_name(name)} is no array: its rows have different "
                             f"lengths") from None
    if array.shape != type_.shape:
        raise MicrotronError(f"{place}: {show_name(name)} has shape {array.shape}, but must have "
                             f"{type_.shape}")
    wanted = np.dtype(type_.dtype)
    if array.dtype != wanted:
        whole = array.dtype.kind in "iub" and wanted.kind == "i"
        if array.dtype.kind not in "fiub" or not (wanted.kind == "f" or whole):
            raise MicrotronError(f"{place}: {show_name(name)} is {array.dtype}, but must be "
                                 f"{type_.dtype}")
        converted = array.astype(wanted)
        if whole and not np.array_equal(converted, array):
            raise MicrotronError(f"{place}: {show_name(name)} has integers that {type_.dtype} does "
                                 f"not hold")
        array = converted
    if wanted.kind == "f" and not np.isfinite(array).all():
        where = tuple(int(each) for each in np.argwhere(~np.isfinite(array))[0])
        raise MicrotronError(f"{place}: {show_name(name)} is {array[where]} at {where}; samples "
                             f"must be finite numbers")
    return np.ascontiguousarray(array)


@contextmanager
def open_samples(inputs: Inputs, data: object) -> Iterator[Samples]:
    """The samples of a file, a folder or an iterable."""
    if isinstance(data, Samples):
        yield data
    elif isinstance(data, str | Path):
        path = Path(data)
        if path.is_dir():
            yield _folder(inputs, path)
        elif path.suffix in (".npz", ".npy"):
            _check_is_there(path)
            yield Samples(inputs, lambda: _rows_of_file(inputs, path), str(path))
        else:
            _check_is_there(path)
            raise MicrotronError(f"{path}: samples are an .npz or .npy file, or a "
                                 f"folder of them")
    elif isinstance(data, Mapping):
        arrays = {name: np.asarray(each) for name, each in data.items()}
        yield Samples(inputs, lambda: _rows(inputs, "the samples", arrays), "the samples")
    elif isinstance(data, np.ndarray):
        yield Samples(inputs, lambda: _rows(inputs, "the samples", {"": data}), "the samples")
    elif isinstance(data, Iterator):
        with tempfile.TemporaryDirectory(prefix="microtron_samples_") as folder:
            yield _spool(inputs, data, Path(folder))
    elif isinstance(data, Iterable):
        yield Samples(inputs, lambda: (as_sample(inputs, each, number)
                                       for number, each in enumerate(data)), "the samples")
    else:
        raise MicrotronError(f"samples are {quote(data)}, but must be a file, a folder, arrays by "
                             f"name or an iterable of samples")


def as_sample(inputs: Inputs, given: Any, number: int) -> Sample:
    """What an iterable gives as a sample: arrays by name, or one array for the only input."""
    if not isinstance(given, Mapping):
        given = {"": given}
    return match_names(inputs, given, f"the samples, sample {number}")


def match_names(inputs: Inputs, given: Mapping[str, Given], place: str) -> dict[str, Given]:
    """Arrays by the names of inputs. A single array may have any name, if there is one input."""
    if len(inputs) == 1 and len(given) == 1 and next(iter(given)) not in inputs:
        return {next(iter(inputs)): next(iter(given.values()))}
    unknown = [name for name in given if name not in inputs]
    missing = [name for name in inputs if name not in given]
    if unknown or missing:
        wrong = f"has {list_names([show_name(each) for each in unknown])}" if unknown else (
            f"lacks {list_names([show_name(each) for each in missing])}")
        raise MicrotronError(f"{place}: it {wrong}, but the inputs are "
                             f"{list_names([show_name(each) for each in inputs])}")
    return dict(given)


def random_samples(inputs: Inputs, count: int = 4, seed: int = 0) -> Samples:
    """Normal numbers, and small integers: good for timing and for nothing else."""
    def source() -> Iterator[Sample]:
        random = np.random.default_rng(seed)
        for _ in range(count):
            yield {name: (random.standard_normal(type_.shape).astype(type_.dtype)
                          if type_.is_float else random.integers(0, 2, type_.shape).astype(
                              type_.dtype)) for name, type_ in inputs.items()}
    return Samples(inputs, source, "random data", random=True)


def _check_is_there(path: Path) -> None:
    if not path.is_file():
        raise MicrotronError(f"{path}: there is no such file or folder")


def _spool(inputs: Inputs, data: Iterator[object], folder: Path) -> Samples:
    """What can be gone through only once, kept on disk."""
    count = 0
    for count, given in enumerate(data, 1):
        sample = as_sample(inputs, given, count - 1)
        for number, name in enumerate(inputs):
            array = check_array(f"the samples, sample {count - 1}", name, sample[name],
                                inputs[name])
            np.save(folder / f"{count - 1}.{number}.npy", array)

    def source() -> Iterator[Sample]:
        for each in range(count):
            yield {name: np.load(folder / f"{each}.{number}.npy")
                   for number, name in enumerate(inputs)}
    return Samples(inputs, source, "the samples")


def _folder(inputs: Inputs, folder: Path) -> Samples:
    """Files of samples, in the order of their names: .npz with all inputs, .npy for the only one,
    or a folder of .npy for each input."""
    arrays = sorted(path for path in folder.iterdir() if path.suffix in (".npy", ".npz"))
    if not arrays and all((folder / name).is_dir() for name in inputs):
        columns = {name: sorted((folder / name).glob("*.npy")) for name in inputs}
        counts = {name: len(each) for name, each in columns.items()}
        if len(set(counts.values())) != 1:
            raise MicrotronError(f"{folder}: inputs have different numbers of "
                                 f"files: {_format_counts(counts)}")
        return Samples(inputs, lambda: ({name: _load(paths[number])
                                         for name, paths in columns.items()}
                                        for number in range(max(counts.values()))), str(folder))
    if not arrays:
        raise MicrotronError(f"{folder}: there is no .npy or .npz file in it")
    return Samples(inputs, lambda: (sample for path in arrays
                                    for sample in _rows_of_file(inputs, path)), str(folder))


def _format_counts(counts: Mapping[str, int]) -> str:
    return list_names([f"{show_name(name)} {count}" for name, count in counts.items()])


def _load(path: Path) -> Array:
    try:
        found: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise MicrotronError(f"{path}: cannot be read: {error}") from None
    return found


def _rows_of_file(inputs: Inputs, path: Path) -> Iterator[Sample]:
    if path.suffix == ".npy":
        yield from _rows(inputs, str(path), {"": _load(path)})
        return
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(path))
            streams = {name.removesuffix(".npy"): _Stream(stack.enter_context(archive.open(name)))
                       for name in archive.namelist()}
            yield from _rows(inputs, str(path), streams)
        except MicrotronError:
            raise
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error,
                RuntimeError) as error:
            raise MicrotronError(f"{path}: is no .npz file of arrays: "
                                 f"{error}") from None


class _Stream:
    """An array in an archive, read from its beginning, some rows at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        version = np.lib.format.read_magic(file)
        header = (np.lib.format.read_array_header_1_0 if version == (1, 0)
                  else np.lib.format.read_array_header_2_0)
        self.shape, by_column, self.dtype = header(file)
        if self.dtype.hasobject:
            raise ValueError("it holds Python objects")
        if by_column and len(self.shape) > 1:
            raise ValueError("an array is in Fortran's order; save what "
                             "np.ascontiguousarray makes of it")
        self._file = file

    def take(self, shape: tuple[int, ...]) -> Array:
        size = prod(shape) * self.dtype.itemsize
        if size > MOST_BYTES:
            raise ValueError(f"a sample of {size} bytes is larger than {MOST_BYTES}")
        data = self._file.read(size)
        if len(data) != size:
            raise EOFError("an array ends early")
        return np.frombuffer(data, self.dtype).reshape(shape)


def _rows(inputs: Inputs, place: str, arrays: Mapping[str, Array | _Stream]) -> Iterator[Sample]:
    """Samples from arrays that hold several: one after the other along the first axis, or along a
    new one before it."""
    matched = match_names(inputs, arrays, place)
    counts = {name: _count(place, name, tuple(each.shape), inputs[name].shape)
              for name, each in matched.items()}
    if len(set(counts.values())) != 1:
        raise MicrotronError(f"{place}: arrays hold different numbers of samples: "
                             f"{_format_counts(counts)}")
    for number in range(next(iter(counts.values()))):
        sample = {}
        for name, each in matched.items():
            shape = inputs[name].shape
            if isinstance(each, _Stream):
                sample[name] = each.take(shape)
            elif each.shape == shape:
                sample[name] = np.asarray(each)
            else:
                rows = shape[0] if each.ndim == len(shape) else 1
                sample[name] = np.asarray(each[number * rows:(number + 1) * rows]).reshape(shape)
        yield sample


def _count(place: str, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> int:
    """How many samples an array of a shape holds."""
    if shape == wanted:
        return 1
    if len(shape) == len(wanted) > 0 and shape[1:] == wanted[1:] and shape[0] % wanted[0] == 0:
        return shape[0] // wanted[0]
    if shape[1:] == wanted and len(shape) == len(wanted) + 1:
        return shape[0]
    if wanted[:1] == (1,) and shape[1:] == wanted[1:]:
        return shape[0]
    raise MicrotronError(f"{place}: {show_name(name)} has shape {shape}, but must have {wanted}, "
                         f"or that with more along the first axis")
