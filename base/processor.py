"""Processors that machine code is made for: the one that runs this, and those of boards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .classes.dataclass import dataclass
from .errors import MicrotronError


@dataclass(frozen=True)
class Target:
    """A processor, as LLVM names it, and what kernels for it depend on."""

    name: str
    triple: str
    cpu: str
    features: str
    abi: str = ""
    relocation: str = "static"
    code_model: str = "default"
    word_bits: int = 32             # of a pointer
    vector_bytes: int = 0           # of a register for vectors; 0: there are none

    @property
    def multiplies_and_adds(self) -> bool:
        """Whether there is an instruction for x × y + z with one rounding."""
        return self.triple.startswith("aarch64") or (
            self.triple.startswith("x86_64") and (
            "+fma" in self.features.split(",") or self.cpu == "x86-64-v3"))

    @property
    def converts_halves(self) -> bool:
        """Whether there are instructions between float16 and float32."""
        return self.triple.startswith("aarch64") or self.cpu in ("x86-64-v3", "cortex-a9") or (
            self.triple.startswith("x86_64") and "+f16c" in self.features.split(","))

    @property
    def saturates(self) -> bool:
        """Whether what converts floats to integers saturates, and makes 0 of NaN."""
        return not self.triple.startswith("x86_64")

    @property
    def adds_byte_products(self) -> bool:
        """Whether there is an x86 instruction that adds four products of bytes, unsigned times
        signed ones, to a number of 32 bits."""
        features = self.features.split(",")
        return self.triple.startswith("x86_64") and (
            "+avxvnni" in features or {"+avx512vnni", "+avx512vl"} <= {*features})

    @property
    def masks_loads(self) -> bool:
        """Whether some lanes of a vector of any type are loaded alone, as AVX-512 does."""
        return self.triple.startswith("x86_64") and self.vector_bytes == 64

    def lanes(self, size: int) -> int:
        """Numbers of so many bytes that a vector holds; 1 if there are no vectors."""
        return max(1, self.vector_bytes // size)


TARGETS = {each.name: each for each in (
    Target("x86-64", "x86_64-unknown-linux-gnu", "x86-64-v3", "", relocation="pic",
           word_bits=64, vector_bytes=32),
    Target("aarch64", "aarch64-unknown-linux-gnu", "cortex-a53", "", relocation="pic",
           word_bits=64, vector_bytes=16),
    # Four parts: without the vendor, LLVM takes it for soft float.
    Target("armv7-neon", "armv7-unknown-linux-gnueabihf", "cortex-a9", "+neon,+vfp3",
           vector_bytes=16),
    Target("rv32imac", "riscv32-unknown-elf", "generic-rv32", "+m,+a,+c", "ilp32",
           code_model="medium"),
    Target("rv32im", "riscv32-unknown-elf", "generic-rv32", "+m", "ilp32", code_model="medium"),
)}


def target(name: str) -> Target:
    """A processor of another machine, by name."""
    if name not in TARGETS:
        raise MicrotronError(f"there is no processor {name!r}; there are {', '.join(TARGETS)}")
    return TARGETS[name]


@cache
def host() -> Target:
    """The processor that runs this."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    text = ",".join(filter(None, (features.flatten(), *_dot_products())))
    return Target("host", llvm.get_process_triple(), llvm.get_host_cpu_name(), text,
                  relocation="default", code_model="jitdefault", word_bits=64,
                  vector_bytes=_vector_bytes(features))


def _vector_bytes(features: Mapping[str, bool]) -> int:
    if all(features.get(each) for each in ("avx512f", "avx512bw", "avx512dq", "avx512vl")):
        return 64
    return 32 if features.get("avx2") else 16


def _dot_products() -> tuple[str, ...]:
    """The feature of products of bytes, which LLVM does not look for on aarch64."""
    try:
        return ("+dotprod",) if " asimddp" in Path("/proc/cpuinfo").read_text() else ()
    except OSError:
        return ()
