"""float16 to and from other floats, without calls.

LLVM calls a library (`__truncdfhf2`, `__extendhfsf2` …) where the processor has no instruction. No
such function is in this process or in the C libraries of boards, and compilers differ in how halves
are passed. So halves are converted by one instruction or by integer arithmetic, and only kept:
everything is computed in float32.
"""

from __future__ import annotations

from .writer import Value, Writer

HALF, SINGLE, DOUBLE, BITS = "float16", "float32", "float64", "int32"
INFINITE = 0x7F80_0000              # bits of float32
REBIASED = (127 - 15) << 23         # from the exponent of float16 to that of float32
LEAST_NORMAL = 113 << 23            # 2^-14
TOO_LARGE = 143 << 23               # 2^16, which is infinite in float16
STEP = 0.5                          # its last place is the least subnormal float16


def widen_half(writer: Writer, value: Value, dtype: str) -> Value:
    """A half as a wider float: always exact."""
    single = (_convert(writer, "fpext", value, SINGLE) if writer.converts_halves
              else _widen_by_integers(writer, value))
    return single if dtype == SINGLE else _convert(writer, "fpext", single, dtype)


def narrow_to_half(writer: Writer, value: Value) -> Value:
    """A wider float as the nearest half, of two the even one."""
    if value.dtype == DOUBLE:
        value = _round_to_odd(writer, value)
    return (_convert(writer, "fptrunc", value, HALF) if writer.converts_halves
            else _narrow_by_integers(writer, value))


def _convert(writer: Writer, name: str, value: Value, dtype: str) -> Value:
    kind = writer.type(dtype, value.lanes)
    return writer.value(f"{name} {writer.operand(value)} to {kind}", dtype, value.lanes)


def _round_to_odd(writer: Writer, value: Value) -> Value:
    """A double as a single that is cut off, and odd unless it is exact. To round that gives what
    rounding the double would; to round to the nearest single first would round twice."""
    code = _Code(writer, value.lanes)
    nearest = _convert(writer, "fptrunc", value, SINGLE)
    back = _convert(writer, "fpext", nearest, DOUBLE)
    above = code.compare("fcmp ogt", code.magnitude(back), code.magnitude(value))
    differs = code.compare("fcmp one", back, value)
    bits = code.apply("sub", code.bits(nearest), code.number(above))
    return code.single(code.apply("or", bits, code.number(differs)))


def _narrow_by_integers(writer: Writer, value: Value) -> Value:
    code = _Code(writer, value.lanes)
    bits = code.bits(value)
    size = code.apply("and", bits, code.constant(0x7FFF_FFFF))
    # Adding 0.5 rounds what is a multiple of the least subnormal number there.
    added = writer.value(f"fadd {writer.operand(code.single(size))}, "
                         f"{writer.constant(STEP, SINGLE, value.lanes).text}", SINGLE, value.lanes)
    small = code.apply("sub", code.bits(added), code.bits(writer.constant(STEP, SINGLE,
                                                                         value.lanes)))
    most = code.constant(TOO_LARGE)
    inside = code.choose(code.compare("icmp slt", size, most), size, most)
    even = code.apply("and", code.apply("lshr", inside, code.constant(13)), code.constant(1))
    moved = code.apply("add", inside, code.constant(0xFFF - REBIASED))
    normal = code.apply("lshr", code.apply("add", moved, even), code.constant(13))
    found = code.choose(code.compare("icmp slt", size, code.constant(LEAST_NORMAL)), small, normal)
    none = code.apply("or", code.apply("and", code.apply("lshr", size, code.constant(13)),
                                       code.constant(0x3FF)), code.constant(0x7E00))
    found = code.choose(code.compare("icmp sgt", size, code.constant(INFINITE)), none, found)
    sign = code.apply("and", code.apply("lshr", bits, code.constant(16)), code.constant(0x8000))
    short = _convert(writer, "trunc", code.apply("or", found, sign), "int16")
    return _convert(writer, "bitcast", short, HALF)


def _widen_by_integers(writer: Writer, value: Value) -> Value:
    code = _Code(writer, value.lanes)
    bits = _convert(writer, "zext", _convert(writer, "bitcast", value, "int16"), BITS)
    size = code.apply("shl", code.apply("and", bits, code.constant(0x7FFF)), code.constant(13))
    normal = code.apply("add", size, code.constant(REBIASED))
    endless = code.apply("add", size, code.constant(2 * REBIASED))
    least = code.constant(LEAST_NORMAL)
    small = code.bits(writer.value(
        f"fsub {writer.operand(code.single(code.apply('add', size, least)))}, "
        f"{writer.constant(2.0 ** -14, SINGLE, value.lanes).text}", SINGLE, value.lanes))
    found = code.choose(code.compare("icmp slt", size, code.constant(1 << 23)), small, normal)
    found = code.choose(code.compare("icmp slt", size, code.constant(31 << 23)), found, endless)
    sign = code.apply("shl", code.apply("and", bits, code.constant(0x8000)), code.constant(16))
    return code.single(code.apply("or", found, sign))


class _Code:
    """Instructions on integers of 32 bits, all lanes at once."""

    def __init__(self, writer: Writer, lanes: int) -> None:
        self.writer, self.lanes = writer, lanes

    def constant(self, number: int) -> Value:
        return self.writer.constant(number, BITS, self.lanes)

    def apply(self, name: str, left: Value, right: Value) -> Value:
        return self.writer.value(f"{name} {self.writer.operand(left)}, {right.text}", BITS,
                                 self.lanes)

    def compare(self, test: str, left: Value, right: Value) -> Value:
        return self.writer.value(f"{test} {self.writer.operand(left)}, {right.text}", "bool",
                                 self.lanes)

    def choose(self, condition: Value, then: Value, otherwise: Value) -> Value:
        parts = ", ".join(map(self.writer.operand, (condition, then, otherwise)))
        return self.writer.value(f"select {parts}", BITS, self.lanes)

    def number(self, condition: Value) -> Value:
        """1 where a condition holds."""
        return _convert(self.writer, "zext", condition, BITS)

    def bits(self, value: Value) -> Value:
        return _convert(self.writer, "bitcast", value, BITS)

    def single(self, bits: Value) -> Value:
        return _convert(self.writer, "bitcast", bits, SINGLE)

    def magnitude(self, value: Value) -> Value:
        scalar = "f64" if self.lanes == 1 else f"v{self.lanes}f64"
        text = self.writer.call(f"llvm.fabs.{scalar}", self.writer.type(DOUBLE, self.lanes),
                                self.writer.operand(value))
        return Value(text, DOUBLE, self.lanes)
