"""Types of NumPy's arrays whose elements are known only when the program runs."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Dtype: TypeAlias = np.dtype[Any]
