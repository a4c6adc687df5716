"""What a session remembers from one inference to the next: tensors by name.

    session.run(frame)
    session.state["stream/states"]              # an array, as the model stores it
    session.state["stream/states"] = array      # checked as an input is
    session.reset()                             # what the model begins with
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping

from ....base.checked_values import list_names, show_name
from ....base.errors import MicrotronError
from ....compiler.graph.types import Array
from ..compiled_model import CompiledModel
from ..tensors import InputError, as_array, convert, refuse_nan
from .resident import ResidentTiles


class SessionState(MutableMapping[str, Array]):
    """The states of a model. Whoever reads or sets them waits until no inference is under way."""

    def __init__(self, model: CompiledModel, residents: Mapping[str, ResidentTiles],
                 wait: Callable[[], None], *, allow_nan: bool) -> None:
        self._model, self._wait, self._allow_nan = model, wait, allow_nan
        self._residents = residents             # in the accelerator's memory; others are here
        self._arrays: dict[str, Array] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        first = {name: each.initial.array for name, each in self._model.states.items()}
        for name, resident in self._residents.items():
            resident.write(first.pop(name))
        self._arrays, self._is_lost = first, False

    def arrays(self) -> Mapping[str, Array]:
        """For an inference that begins now."""
        self._check_kept()
        return self._arrays

    def keep(self, values: Mapping[str, Array]) -> None:
        """What an inference that was right made of them."""
        self._arrays = {name: values[each.result] for name, each in self._model.states.items()
                        if name not in self._residents}

    def note_failure(self, changes_device: bool) -> None:
        """An inference has failed: what was in the accelerator's memory may be half of it."""
        self._is_lost |= changes_device

    def _check_kept(self) -> None:
        if self._is_lost:
            raise MicrotronError("an inference failed while the accelerator had its states, which "
                                 "are lost; Session.reset begins anew")

    def reset(self) -> None:
        self._wait()
        self._begin_anew()

    def __getitem__(self, name: str) -> Array:
        self._check(name)
        self._wait()
        self._check_kept()
        if name in self._residents:
            return self._residents[name].read().copy()
        return self._arrays[name].copy()

    def __setitem__(self, name: str, value: Array) -> None:
        self._check(name)
        place = f"state {show_name(name)}"
        array = convert(place, as_array(place, value), self._model.states[name].type)
        if not self._allow_nan:
            refuse_nan(place, array)
        self._wait()
        self._check_kept()
        if name in self._residents:
            self._residents[name].write(array)
        else:
            self._arrays = {**self._arrays, name: array}

    def __delitem__(self, name: str) -> None:
        raise InputError("a state cannot be deleted; Session.reset makes all of them as they were")

    def __iter__(self) -> Iterator[str]:
        return iter(self._model.states)

    def __len__(self) -> int:
        return len(self._model.states)

    def __contains__(self, name: object) -> bool:
        return name in self._model.states

    def __repr__(self) -> str:
        states = ", ".join(f"{show_name(name)}: {each.type.plain()}"
                           for name, each in self._model.states.items())
        return f"<SessionState ({states})>"

    def _check(self, name: str) -> None:
        if name not in self._model.states:
            known = list_names([show_name(each) for each in self._model.states])
            raise InputError(f"there is no state {show_name(str(name))}; the model has "
                             f"{known or 'none'}")
