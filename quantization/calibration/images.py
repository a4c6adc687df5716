"""A folder of images as samples. Pillow reads them, and is asked for only here."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ..parameters import Array

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm")
LARGEST = 1 << 14               # pixels of a side
LAYOUTS = ("nchw", "nhwc")
WIDE_MODES = ("I", "F")         # of Pillow, which would clip them at 255
CHANNELS = {"rgb": "RGB", "bgr": "RGB", "grey": "L"}


@dataclass(frozen=True)
class Preprocess:
    """How a picture becomes an input: sides, then (pixel × scale − mean) / std, then axes."""

    size: tuple[int, int] | None = None     # rows and columns; None leaves the picture as it is
    crop: tuple[int, int] | None = None     # of the middle, after resizing
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    layout: str = "nchw"
    channels: str = "rgb"

    @staticmethod
    def parse(text: str) -> Preprocess:
        """As the command line has it: size=224,mean=0.485/0.456/0.406,layout=nchw."""
        known = {each.name for each in fields(Preprocess)}
        given: dict[str, Any] = {}
        for part in text.split(","):
            name, separator, value = part.partition("=")
            if not separator or name not in known or name in given:
                raise MicrotronError(f"--preprocess has {quote(part)}, but must be name=value with "
                                     f"each of {', '.join(sorted(known))} at most once")
            given[name] = _parse_option(name, value)
        found = Preprocess(**given)
        if found.channels == "grey" and max(len(found.mean), len(found.std)) > 1:
            raise MicrotronError(f"--preprocess is {quote(text)}, but grey pictures have one mean "
                                 f"and one std")
        return found

    def apply(self, path: Path) -> Array:
        """One picture as an array with a batch of one."""
        try:
            from PIL import Image
        except ImportError:
            raise MicrotronError("reading images needs the package pillow: "
                                 "pip install pillow") from None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)
                opened = Image.open(path)
            with opened:
                if max(opened.size) > LARGEST:
                    raise MicrotronError(f"{path} has {opened.size[0]} × "
                                         f"{opened.size[1]} pixels, more than {LARGEST} on a side")
                if opened.mode.startswith(WIDE_MODES):
                    raise MicrotronError(f"{path} has pixels of more than 8 bits; convert it, or "
                                         f"give samples as arrays")
                image = opened.convert(CHANNELS[self.channels])
                if self.size is not None:
                    image = image.resize(self.size[::-1], Image.Resampling.BILINEAR)
        except MicrotronError:
            raise
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise MicrotronError(f"{path}: cannot be read as an image: "
                                 f"{error}") from None
        pixels = np.asarray(image, np.float32)
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
        if self.channels == "bgr":
            pixels = pixels[..., ::-1]
        pixels = self._crop(pixels, path)
        values = (pixels * np.float32(self.scale) - np.array(self.mean, np.float32)) / np.array(
            self.std, np.float32)
        found: Array = values.transpose(2, 0, 1) if self.layout == "nchw" else values
        return np.ascontiguousarray(found[None])

    def _crop(self, pixels: Array, path: Path) -> Array:
        if self.crop is None:
            return pixels
        rows, columns = self.crop
        top, left = (pixels.shape[0] - rows) // 2, (pixels.shape[1] - columns) // 2
        if min(top, left) < 0:
            raise MicrotronError(f"{path} has {pixels.shape[0]} × "
                                 f"{pixels.shape[1]} pixels, less than a crop of {rows} × "
                                 f"{columns}")
        return pixels[top:top + rows, left:left + columns]


def _parse_option(name: str, value: str) -> str | float | tuple[float, ...]:
    if name in ("layout", "channels"):
        right = LAYOUTS if name == "layout" else tuple(CHANNELS)
        if value not in right:
            raise MicrotronError(f"--preprocess: {name} is {quote(value)}, but must be one of "
                                 f"{', '.join(right)}")
        return value
    try:
        if name in ("size", "crop"):
            sides = [int(each) for each in value.split("x")]
            if len(sides) > 2 or not all(1 <= each <= LARGEST for each in sides):
                raise ValueError
            return (sides[0], sides[-1])
        if name == "scale":
            above, _, below = value.partition("/")
            scale = float(above) / float(below or 1)
            if not scale or not isfinite(scale):
                raise ValueError
            return scale
        numbers = tuple(float(each) for each in value.split("/"))
        if len(numbers) not in (1, 3) or not all(map(isfinite, numbers)) or (
                name == "std" and not all(numbers)):
            raise ValueError
    except (ValueError, ZeroDivisionError):
        raise MicrotronError(f"--preprocess: {name} is {quote(value)}, but must be as in size=224, "
                             f"crop=224x160, scale=1/255, mean=0.5 or std=0.2/0.2/0.2") from None
    return numbers


def image_folder(folder: Path, preprocess: str) -> ImageFolder:
    return ImageFolder(folder, Preprocess.parse(preprocess))


class ImageFolder:
    """All images of a folder, in the order of their names; read each time they are asked for."""

    def __init__(self, folder: Path, preprocess: Preprocess) -> None:
        if not folder.is_dir():
            raise MicrotronError(f"{folder}: there is no such folder of images")
        self.preprocess = preprocess
        self.paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
        if not self.paths:
            raise MicrotronError(f"{folder}: there is no image in it, such as "
                                 f"{', '.join(SUFFIXES[:3])}")

    def __iter__(self) -> Iterator[Array]:
        return (self.preprocess.apply(path) for path in self.paths)
