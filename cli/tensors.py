"""Tensors of networks in files that the command line names: .npy, and .npz with several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import MicrotronError

if TYPE_CHECKING:
    from ..base.arrays import Array
    from ..compiler.graph.types import TensorType

KINDS = {"--input": "input", "--output": "output", "--state-in": "state", "--state-out": "state"}
READ = ("--input", "--state-in")            # options whose files are there before


def read_inputs(given: list[str] | None, types: Mapping[str, TensorType],
                option: str = "--input", *, frames: bool = False) -> dict[str, Array]:
    """The inputs that the option names, as arrays that the model takes; with `frames`, each has an
    axis before its own.

        image.npy           the only input
        x=x.npy             one of several
        x=inputs.npz        the array x of a file with several, or its only one
        inputs.npz          all arrays of a file, each for the input of its name
    """
    found: dict[str, Array] = {}
    for name, file in _files_by_input(option, given, types):
        for each, array in _arrays(option, file, name, types, frames=frames):
            if each in found:
                raise _twice(option, each)
            found[each] = array
    return found


def output_files(given: list[str] | None, types: Iterable[str],
                 option: str = "--output") -> dict[str, Path]:
    """Files for outputs: y=y.npy, or y.npy if there is only one."""
    names = list(types)
    found: dict[str, Path] = {}
    for each in given or []:
        name, file = _split(option, each, names)
        if name is None or not file:
            raise _malformed_option(option, each, names)
        if name in found:
            raise _twice(option, name)
        found[name] = Path(file)
    return found


def _files_by_input(option: str, given: list[str] | None,
                    types: Mapping[str, TensorType]) -> Iterable[tuple[str | None, Path]]:
    names = list(types)
    for each in given or []:
        name, file = _split(option, each, names)
        if not file or (name is None and not file.endswith(".npz")):
            raise _malformed_option(option, each, names)
        yield name, Path(file)


def _split(option: str, given: str, names: list[str]) -> tuple[str | None, str]:
    """The tensor and the file that an option means. Names and files may have any character, so
    that a name that the model has counts first, then a file that is there."""
    fitting = [name for name in names if given.startswith(f"{name}=")]
    if fitting:
        name = max(fitting, key=len)
        return name, given[len(name) + 1:]
    before, equals, _ = given.partition("=")
    if equals and not (option in READ and Path(given).is_file()):
        raise _unknown(option, before, names)
    if given.endswith(".npz") and option in READ:
        return None, given
    if len(names) == 1 and given.endswith(".npy"):
        return names[0], given
    return None, given


def _arrays(option: str, file: Path, name: str | None, types: Mapping[str, TensorType], *,
            frames: bool) -> Iterable[tuple[str, Array]]:
    from ..runtime.models.tensor_files import npz_names, read_array, read_npz_array

    if file.suffix != ".npz":
        assert name is not None, "only .npz files have names of their own"
        yield name, read_array(file, *_expected_tensor(option, name, types[name], frames=frames))
        return
    members = npz_names(file)
    if name is not None:
        chosen = {name: _member(file, name, members)}
    elif len(members) == 1 == len(types):
        chosen = {next(iter(types)): members[0]}        # np.savez calls it arr_0
    else:
        for each in members:
            if each not in types:
                raise _unknown(option, each, list(types), f"{file}")
        chosen = {each: each for each in members}
    for each, member in chosen.items():
        yield each, read_npz_array(file, member,
                                   *_expected_tensor(option, each, types[each], frames=frames))


def _member(file: Path, name: str, members: list[str]) -> str:
    from ..base.checked_values import list_names, show_name

    if name in members:
        return name
    if len(members) == 1:
        return members[0]
    raise MicrotronError(f"{file}: holds no array {show_name(name)}; it has "
                         f"{list_names([show_name(each) for each in members]) or 'none'}")


def _expected_tensor(option: str, name: str, type_: TensorType, *,
                     frames: bool) -> tuple[str, tuple[int | None, ...], tuple[str, ...]]:
    """What a file must hold for an input: its place, its shape and its types."""
    from ..base.checked_values import show_name
    from ..runtime.models.tensors import accepted_types
    shape = (None, *type_.shape) if frames else type_.shape
    return f"{KINDS[option]} {show_name(name)}", shape, accepted_types(type_)


def _unknown(option: str, name: str, names: list[str], place: str = "") -> MicrotronError:
    """What resembles the name comes first."""
    import difflib

    from ..base.checked_values import list_names, show_name
    kind = KINDS[option]
    near = difflib.get_close_matches(name, names, 3, 0.5)
    order = [*near, *(each for each in names if each not in near)]
    return MicrotronError(f"{place or option}: there is no {kind} {show_name(name)}; the model has "
                          f"{list_names([show_name(each) for each in order]) or 'none'}"
                          f"{f'; did you mean {show_name(near[0])}?' if near else ''}")


def _malformed_option(option: str, given: str, names: list[str]) -> MicrotronError:
    from ..base.checked_values import list_names, show_name
    example = next(iter(names), "x")
    return MicrotronError(f"{option} {show_name(given)} must be a tensor and a file, as in "
                          f"{show_name(example)}={KINDS[option]}.npy; the model has "
                          f"{list_names([show_name(name) for name in names]) or 'none'}")


def _twice(option: str, name: str) -> MicrotronError:
    from ..base.checked_values import show_name
    return MicrotronError(f"{option} names the tensor {show_name(name)} twice")
