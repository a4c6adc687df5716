"""What a board has room for, and whether a configuration is expected to fit."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...base.errors import MicrotronError
from ...boards.facts.board import RESOURCES, Board
from ...boards.facts.errors import BoardError
from ...boards.facts.fit import TARGET_OF_FLOW, check_fits, shell_resources
from ...isa.config import Config
from ..area.area_model import AreaModel


class UnfitError(MicrotronError):
    """A configuration that a board has no room for. `short` is what there is too little of."""

    def __init__(self, short: str, message: str) -> None:
        super().__init__(message)
        self.short = short


@dataclass(frozen=True)
class Budget:
    """A board with a model of areas on its family."""

    board: Board
    model: AreaModel
    family: str = field(init=False)

    def __post_init__(self) -> None:
        family = TARGET_OF_FLOW.get(self.board.flow)
        if family not in self.model.weights:
            raise MicrotronError(f"{self.board.name}: areas are not known for its parts, only for "
                                 f"those of {', '.join(self.model.weights)}")
        object.__setattr__(self, "family", family)

    def area(self, config: Config) -> dict[str, float]:
        """What a bitstream is expected to take, shell included."""
        shell = shell_resources(self.board)
        predicted = self.model.predict(config, self.family, self.board.part.resources["dsp"])
        return {kind: number + shell[kind] for kind, number in predicted.items()}

    def check(self, config: Config) -> dict[str, float]:
        """The area of a configuration; raises UnfitError if there is no room for it."""
        part, area = self.board.part, self.area(config)
        for kind, number in area.items():
            if number > part.resources[kind]:
                raise UnfitError(kind, f"it would take {number:,.0f} {RESOURCES[kind]}, but "
                                  f"{part.device} has {part.resources[kind]:,}")
        try:
            check_fits(self.board, config)
        except BoardError as error:
            raise UnfitError("board", str(error)) from None
        return area
