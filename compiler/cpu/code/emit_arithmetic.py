"""Operators and casts in LLVM, to the bit what they are in `expression.scalars`.

Halves are computed with as floats of 32 bits and rounded after each operation. Integers wrap.
Nothing traps: a division by zero is zero, and a shift by too much leaves the sign.
"""

from __future__ import annotations

from ...expression.expression import BOOL, COMPARISONS, FLOATS, INDEX, LOGIC
from .halves import HALF, SINGLE, narrow_to_half, widen_half
from .writer import SIZES, UNSIGNED, Value, Writer

PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
OF_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
INTEGER_TESTS = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle"}
FLOAT_TESTS = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole"}
SATURATED = "int64"             # what floats become before high bits are dropped


def operate(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    """An operator between two values of one type."""
    if left.dtype == HALF:
        found = operate(writer, operator, widen_half(writer, left, SINGLE),
                        widen_half(writer, right, SINGLE))
        return found if found.dtype == BOOL else narrow_to_half(writer, found)
    lanes = max(left.lanes, right.lanes)
    left, right = writer.broadcast(left, lanes), writer.broadcast(right, lanes)
    dtype, kind = left.dtype, writer.type(left.dtype, lanes)
    if operator in LOGIC:
        return writer.value(f"{operator} {kind} {left.text}, {right.text}", BOOL, lanes)
    if operator in COMPARISONS:
        return _compare(writer, operator, left, right)
    if operator in ("min", "max"):
        return _extreme(writer, operator, left, right)
    if operator in ("//", "%"):
        divide = _divide_floats if dtype in FLOATS else _divide
        return divide(writer, operator, left, right)
    if operator in ("<<", ">>"):
        return _shift(writer, operator, left, right)
    name = OF_FLOATS[operator] if dtype in FLOATS else PLAIN[operator]
    flags = " nsw" if dtype == INDEX and operator in "+-*" else ""
    return writer.value(f"{name}{flags} {kind} {left.text}, {right.text}", dtype, lanes)


def _compare(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    kind = writer.type(left.dtype, left.lanes)
    if left.dtype in FLOATS:
        test = f"fcmp {FLOAT_TESTS[operator]}"
    else:
        name = INTEGER_TESTS[operator]
        test = f"icmp {'u' + name[1:] if left.dtype in UNSIGNED and name[0] == 's' else name}"
    return writer.value(f"{test} {kind} {left.text}, {right.text}", BOOL, left.lanes)


def _extreme(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    kind = writer.type(left.dtype, left.lanes)
    if left.dtype in FLOATS:
        name = {"min": "minimum", "max": "maximum"}[operator]       # NaN stays
    else:
        name = ("u" if left.dtype in UNSIGNED else "s") + operator
    text = writer.call(f"llvm.{name}.{suffix(writer, left)}", kind, writer.operand(left),
                       writer.operand(right))
    return Value(text, left.dtype, left.lanes)


def suffix(writer: Writer, value: Value) -> str:
    """What LLVM appends to the name of a function for a type."""
    scalar = {"half": "f16", "float": "f32", "double": "f64"}.get(writer.scalar(value.dtype),
                                                   writer.scalar(value.dtype))
    return scalar if value.lanes == 1 else f"v{value.lanes}{scalar}"


def select_lanes(writer: Writer, condition: Value, then: Value, otherwise: Value) -> Value:
    """One of two values, lane by lane; both exist."""
    lanes = max(condition.lanes, then.lanes, otherwise.lanes)
    then, otherwise = writer.broadcast(then, lanes), writer.broadcast(otherwise, lanes)
    parts = ", ".join(map(writer.operand, (condition, then, otherwise)))
    return writer.value(f"select {parts}", then.dtype, lanes)


def _number(value: Value) -> int | None:
    """The number that an integer constant is in every lane."""
    text = value.text.removeprefix("splat (").removesuffix(")").rpartition(" ")[2]
    return int(text) if text.lstrip("-").isdigit() else None


def _divide(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    """Rounded down. LLVM rounds towards zero, and leaves out what processors trap on."""
    dtype, lanes, divisor = left.dtype, left.lanes, _number(right)
    if dtype in UNSIGNED:
        return _divide_unsigned(writer, operator, left, right)
    if divisor is not None and divisor > 0 and divisor & divisor - 1 == 0:
        name, by = ("ashr", divisor.bit_length() - 1) if operator == "//" else ("and", divisor - 1)
        return operate_plain(writer, name, left, writer.constant(by, dtype, lanes))
    if divisor is not None and divisor not in (0, -1):
        return _floor_divide(writer, operator, left, right)
    empty = _compare(writer, "==", right, writer.constant(0, dtype, lanes))
    found = _floor_divide(writer, operator, left, _divisible(writer, left, right, empty))
    return select_lanes(writer, empty, writer.constant(0, dtype, lanes), found)


def _floor_divide(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    """The quotient or the rest, of a divisor that processors take."""
    dtype, lanes, kind = left.dtype, left.lanes, writer.type(left.dtype, left.lanes)
    quotient = operate_plain(writer, "sdiv", left, right)
    rest = operate_plain(writer, "srem", left, right)
    zero, one = writer.constant(0, dtype, lanes), writer.constant(1, dtype, lanes)
    uneven = _compare(writer, "!=", rest, zero)
    mixed = writer.value(f"xor {kind} {rest.text}, {right.text}", dtype, lanes)
    down = operate(writer, "and", uneven, _compare(writer, "<", mixed, zero))
    if operator == "%":
        return operate(writer, "+", rest, select_lanes(writer, down, right, zero))
    return operate(writer, "-", quotient, select_lanes(writer, down, one, zero))


def operate_plain(writer: Writer, name: str, left: Value, right: Value) -> Value:
    kind = writer.type(left.dtype, left.lanes)
    return writer.value(f"{name} {kind} {left.text}, {right.text}", left.dtype, left.lanes)


def _divide_unsigned(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    zero = writer.constant(0, left.dtype, left.lanes)
    one = writer.constant(1, left.dtype, left.lanes)
    empty = _compare(writer, "==", right, zero)
    safe = select_lanes(writer, empty, one, right)
    found = operate_plain(writer, "udiv" if operator == "//" else "urem", left, safe)
    return select_lanes(writer, empty, zero, found)


def _divisible(writer: Writer, left: Value, right: Value, empty: Value) -> Value:
    """A divisor with 1 in place of 0, and of -1 where the quotient would not fit: what the least
    number gives is itself."""
    dtype, lanes = left.dtype, left.lanes
    bits = int(writer.scalar(dtype)[1:])
    least = writer.constant(-(1 << bits - 1), dtype, lanes)
    overflows = operate(writer, "and", _compare(writer, "==", left, least),
                        _compare(writer, "==", right, writer.constant(-1, dtype, lanes)))
    return select_lanes(writer, operate(writer, "or", overflows, empty),
                        writer.constant(1, dtype, lanes), right)


def _divide_floats(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    """As NumPy does it: the rest has the sign of the divisor, and both fit together."""
    dtype, lanes = left.dtype, left.lanes
    zero, one = writer.constant(0.0, dtype, lanes), writer.constant(1.0, dtype, lanes)
    rest = operate_plain(writer, "frem", left, right)
    quotient = operate(writer, "/", operate(writer, "-", left, rest), right)
    uneven = _compare(writer, "!=", rest, zero)
    below = operate(writer, "and", uneven, _compare(
        writer, "!=", _compare(writer, "<", right, zero), _compare(writer, "<", rest, zero)))
    if operator == "%":
        moved = select_lanes(writer, below, operate(writer, "+", rest, right), rest)
        return select_lanes(writer, uneven, moved, function(writer, "copysign", zero, right))
    quotient = select_lanes(writer, below, operate(writer, "-", quotient, one), quotient)
    floor = function(writer, "floor", quotient)
    up = _compare(writer, "<", writer.constant(0.5, dtype, lanes),
                  operate(writer, "-", quotient, floor))
    floor = select_lanes(writer, up, operate(writer, "+", floor, one), floor)
    plain = operate(writer, "/", left, right)
    floor = select_lanes(writer, _compare(writer, "!=", quotient, zero), floor,
                         function(writer, "copysign", zero, plain))
    return select_lanes(writer, _compare(writer, "==", right, zero), plain, floor)


def function(writer: Writer, name: str, *arguments: Value) -> Value:
    """A function of floats that LLVM has."""
    if arguments[0].dtype == HALF:
        return narrow_to_half(writer, function(writer, name, *(
            widen_half(writer, each, SINGLE) for each in arguments)))
    lanes = max(each.lanes for each in arguments)
    arguments = tuple(writer.broadcast(each, lanes) for each in arguments)
    first = arguments[0]
    text = writer.call(f"llvm.{name}.{suffix(writer, first)}", writer.type(first.dtype, lanes),
                       *map(writer.operand, arguments))
    return Value(text, first.dtype, lanes)


def _shift(writer: Writer, operator: str, left: Value, right: Value) -> Value:
    dtype, lanes = left.dtype, left.lanes
    name = "shl" if operator == "<<" else "lshr" if dtype in UNSIGNED else "ashr"
    bits, by = int(writer.scalar(dtype)[1:]), _number(right)
    if by is not None and 0 <= by < bits:
        return operate_plain(writer, name, left, right)
    most = writer.constant(bits - 1, dtype, lanes)
    kind = writer.type(dtype, lanes)
    fits = writer.value(f"icmp ule {kind} {right.text}, {most.text}", BOOL, lanes)
    if name == "ashr":                  # by too much: the sign alone
        return operate_plain(writer, name, left, select_lanes(writer, fits, right, most))
    inside = operate_plain(writer, name, left, select_lanes(writer, fits, right, most))
    return select_lanes(writer, fits, inside, writer.constant(0, dtype, lanes))


def cast(writer: Writer, value: Value, dtype: str, *, fits_in_32: bool = False) -> Value:
    """A value as another type. Floats become integers of 64 bits first, or of 32 if it is known
    that they fit: nothing overflows, and NaN is zero."""
    if value.dtype == dtype:
        return value
    if value.dtype == HALF:
        single = widen_half(writer, value, dtype if dtype in FLOATS else SINGLE)
        return cast(writer, single, dtype, fits_in_32=fits_in_32)
    if dtype == HALF:           # integers that are not exact as singles are infinite as halves
        return narrow_to_half(writer,
                              value if value.dtype in FLOATS else cast(writer, value, SINGLE))
    lanes, kind = value.lanes, writer.type(dtype, value.lanes)
    if value.dtype in FLOATS:
        if dtype in FLOATS:
            name = "fpext" if SIZES[dtype] > SIZES[value.dtype] else "fptrunc"
            return writer.value(f"{name} {writer.operand(value)} to {kind}", dtype, lanes)
        if dtype == BOOL:
            return _compare(writer, "!=", value, writer.constant(0.0, value.dtype, lanes))
        whole = "int32" if fits_in_32 and "64" not in dtype else (
            dtype if dtype == "uint64" else SATURATED)
        return cast(writer, _to_integer(writer, value, whole), dtype)
    if dtype in FLOATS:
        name = "uitofp" if value.dtype in UNSIGNED else "sitofp"
        return writer.value(f"{name} {writer.operand(value)} to {kind}", dtype, lanes)
    if dtype == BOOL:
        return _compare(writer, "!=", value, writer.constant(0, value.dtype, lanes))
    return _resize_integer(writer, value, dtype)


def _to_integer(writer: Writer, value: Value, dtype: str) -> Value:
    """A float as int32, which it fits in, int64 or uint64, saturated; 0 for NaN."""
    lanes, kind = value.lanes, writer.type(dtype, value.lanes)
    if dtype == "uint64" or writer.saturates:
        shape = f"v{lanes}" if lanes > 1 else ""
        name = "fptoui" if dtype == "uint64" else "fptosi"
        text = writer.call(f"llvm.{name}.sat.{shape}{writer.scalar(dtype)}."
                           f"{suffix(writer, value)}", kind, writer.operand(value))
        return Value(text, dtype, lanes)
    # LLVM takes vectors apart to saturate them on x86-64.
    zero = writer.constant(0.0, value.dtype, lanes)
    known = select_lanes(writer, _compare(writer, "==", value, value), value, zero)
    if dtype == "int32":
        return writer.value(f"fptosi {writer.operand(known)} to {kind}", dtype, lanes)
    limit = writer.constant(float(1 << 63), value.dtype, lanes)
    low = writer.constant(-float(1 << 63), value.dtype, lanes)
    fits = _compare(writer, "<", known, limit)
    known = select_lanes(writer, fits, select_lanes(
        writer, _compare(writer, "<", known, low), low, known), zero)
    found = writer.value(f"fptosi {writer.operand(known)} to {kind}", dtype, lanes)
    return select_lanes(writer, fits, found, writer.constant((1 << 63) - 1, dtype, lanes))


def _resize_integer(writer: Writer, value: Value, dtype: str) -> Value:
    """An integer with more or fewer bits. An index of 32 bits takes what is nearest to one of 64,
    so that what is outside stays outside."""
    before, after = (int(writer.scalar(each)[1:]) for each in (value.dtype, dtype))
    if before == after:
        return Value(value.text, dtype, value.lanes)
    if before > after and dtype == INDEX:
        for operator, bound in (("max", -(1 << after - 1)), ("min", (1 << after - 1) - 1)):
            value = operate(writer, operator, value,
                            writer.constant(bound, value.dtype, value.lanes))
    name = "trunc" if before > after else "zext" if value.dtype in UNSIGNED else "sext"
    return writer.value(f"{name} {writer.operand(value)} to {writer.type(dtype, value.lanes)}",
                        dtype, value.lanes)


def as_bits(writer: Writer, value: Value, dtype: str) -> Value:
    """The same bits as a value of another type."""
    kind = writer.type(dtype, value.lanes)
    return writer.value(f"bitcast {writer.operand(value)} to {kind}", dtype, value.lanes)

