"""Arrays without an owner, for compiled code that calls many functions."""

from __future__ import annotations

from typing import Any

from numba.extending import intrinsic


def _unowned(typing_context: Any, array: Any) -> Any:
    """The same array, whose references nobody counts. It must not outlive the original.

    Compiled functions count references to arrays that they are given, with atomic instructions:
    in the simulator's loop these would take more time than everything else.
    """
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(array)(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)      # null
        return view._getvalue()
    return array(array), generate


unowned: Any = intrinsic(_unowned)
