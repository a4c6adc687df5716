"""The part of the manual that no declaration can tell: how the machine works, how text looks.

`{…}` stand for what isa/manual.py derives.
"""

OPENING = """\
# The instruction set

Version {version}. Written by `make docs` from the declarations in `isa/`; edit those.

An instruction is {bytes} bytes, the same for every configuration: an opcode byte, two token masks,
and fields at whole bytes, little-endian, each aligned to its own size. Bytes that no field uses are
reserved and must be zero. An opcode of zero is no instruction, so blank memory is illegal.

## The machine

Four engines work at the same time, each on its own instructions in program order. FETCH reads the
program, hands every instruction to its engine's queue and executes `sync` itself.

{engines}

```text
               ┌─► uop ─┐
DRAM ─► LOAD ──┼─► inp ─┼─► GEMM
               ├─► wgt ─┘     ▲
               │              ▼
               └───────────► acc ◄─► ALU ─► out ─┐
                              │                  ├─► STORE ─► DRAM
                              └──────────────────┘
```

### Tokens

Nothing orders two engines but tokens. There is one counter for each ordered pair of engines. An
instruction starts when its engine holds a token from every engine in `wait`, and takes these. When
its effects are complete it posts one token to every engine in `post`. An engine completes its
instructions in order, so one token speaks for all that came before it.

```text
load.inp segment=data shape=1,1,8 post=gemm     ; the tiles are there: GEMM may read them
gemm     wait=load loops=1,1,8 post=load        ; they are used: LOAD may overwrite them
```

An engine never names itself, and `sync`, which has no engine, names none. A counter that would go
beyond its width halts the accelerator. `microtron verify` proves that a program cannot deadlock,
race or overflow a counter, whatever the timing.

### Scratchpads

Indices count tiles, never bytes. A tile product multiplies a batch × block_in activation tile by a
block_out × block_in weight tile; the configuration chooses the three numbers and how many tiles
each scratchpad holds. For `{preset}`:

{buffers}

A tile lies row by row, in DRAM and in its scratchpad. If block_in and block_out differ, tiles of
activations, sums and results that have the larger block lie in groups of min(block_in, block_out)
lanes instead, each group with all rows of the batch. So such a tile is several of the smaller
block, one after the other, and results are activations without a byte being moved.

### Windows

A depthwise [gemm](#gemm) takes one tap of a kernel in a cycle, a [window](#window) three that are
neighbours in a row of the image. Rows of weights then lie in groups of four, of which the last
one is not taken. A kernel of 3 × 3 slides along a row of sixteen pixels in 3 × 18 cycles instead of
9 × 16; the middle loop walks down three rows of the image, 32 tiles each:

```text
{window}
```

With an inner loop of N iterations and strides `src_step` and `wgt_step` of that loop, a window
equals a depthwise gemm with an inner loop of N − 2, `first_uop`, and three micro-ops:
`src + t × src_step` and `wgt + t × (wgt_step + 1)` for t = 0, 1, 2. Only accelerators with
`window_taps` = 3 have this instruction; for others it is a word that is no instruction.

### Tables

A [requantize](#requantize) with `lookup` writes to `out` what a table of 256 entries has for each
result: any function of a number of 8 bits, for no cycle more. There are {tables} tables, and the
ALU alone knows them. A [table](#table) fills one from accumulator tiles, which a load has brought
there; its words are the lanes of these tiles, {entries} entries each. Entry n is for the result
n − 128.

```text
{table}
```

Only accelerators with `tables` = {tables} have this; for others, both are words that are no
instruction.

### Segments

Addresses are a segment and a byte offset. A program names up to {segments} segments; the runtime
places them on multiples of {alignment} bytes and writes base and size to the control registers. A
transfer that leaves its segment, or stores to one the program declared for reading, halts the
accelerator; nothing outside is touched. Offsets and strides are multiples of the tile.

### Arithmetic

Products are summed in 32 bits and wrap. `isa/arithmetic.py` defines every operation on plain
integers, and the same on arrays: `alu` is a lane of the ALU, `requantize` a lane of the
requantizer. A requantize adds the channel's bias, multiplies by its 32-bit multiplier, shifts right
by its shift (the low six bits), adds the zero point and clamps. `quantize_scale` finds multiplier
and shift for a real scale. What happens to the bits it drops is chosen by [Rounding](#rounding).
"""

ASSEMBLY = """\
## Assembly

One statement a line; `;` opens a comment. `microtron asm` makes a program image of a text and
`microtron disasm` a text of an image, which assembles to the same image again.

```text
mnemonic[.suffix] [wait=…] [field=value …] [post=…]
```

A field left out has its default. Numbers are decimal or `0x` hexadecimal. Vectors are joined by
commas: `shape=1,4,16`. Names of flags are joined by a bar: `wait=load|alu`; `none` is the empty
set. A segment goes by its name or its number. `name:` before an instruction, or on a line of its
own, is a label; names with odd characters stand in quotes.

| directive | meaning |
|---|---|
| `.config base batch=2` | the configuration: a preset and what differs; `base` unless given |
| `.segment data size=0x1000 access=write` | a segment, numbered in order; `read` unless given |
| `.uops data+0x40` | content of a segment from there on: `uop dst=1 src=2` on each line |
| `.bytes data+0x80` | content as hexadecimal bytes: `01020304 ff`, or `00*4096` for a run |
| `.code` | instructions again, after content |
| `.word 07000001 …` | {bytes} bytes as they are, mostly a word that is not a valid instruction |
| `.tensor x segment=data offset=0x40 shape=1,16 dtype=int8` | where a runtime finds a tensor |
| `.provenance model "resnet18.onnx"` | where the program came from, in words |

Content without an offset goes on where it stopped, and never goes back; gaps are zero. Gaps and
repetitions of a text make at most 64 MiB. Inside quotes, `\\n`, `\\t`, `\\"`, `\\\\` and
`\\u{{1f600}}` stand for what they do elsewhere.

### A whole program

Three pixels with eight channels each go through a fully connected layer with four outputs. Then a
residual is added, negative sums become zero, and the result is scaled to 8 bits.

{example}
"""

WINDOW_EXAMPLE = (
    "window wait=load flags=start|first_middle loops=1,3,18 dst_stride=0,0,1 src_stride=0,32,1 "
    "wgt_stride=0,4,0")

TABLE_EXAMPLE = (
    "load.acc segment=tables shape=1,1,4 post=alu\n"
    "table wait=load table=3\n"
    "requantize flags=even|lookup|table_1|table_2 params=4 loops=1,1,64 dst_stride=0,0,1 "
    "src_stride=0,0,1")

EXAMPLE = """\
.config tiny                        ; tiles of 1×4 activations, 4×4 weights
.segment constants size=0x60
.segment data size=0x60 access=write
.tensor x        segment=data offset=0x00 shape=3,8
.tensor residual segment=data offset=0x20 shape=3,4
.tensor y        segment=data offset=0x40 shape=3,4

.uops constants                     ; one micro-op for each block of four input channels
    uop src=0 wgt=0
    uop src=1 wgt=1
.bytes constants                    ; weights: four outputs by four inputs, twice
    01000000 00010000 00000100 00000001
    02000000 00020000 00000200 00000002
.bytes constants                    ; bias, multiplier and shift of each output: 5, ½
    05000000*4
    00000040*4
    1f000000*4

.code
load:
    load.uop  segment=constants shape=1,1,2
    load.wgt  segment=constants offset=0x10 shape=1,1,2
    load.acc  segment=constants offset=0x30 sram=16 shape=1,1,3         ; parameters
    load.inp  segment=data shape=1,3,2 stride=0,8 post=gemm             ; x
    load.acc8 segment=data offset=0x20 sram=8 shape=1,1,3 post=alu      ; residual
compute:
    gemm wait=load flags=start|first_uop count=2 loops=1,1,3 dst_stride=0,0,1 src_stride=0,0,2 post=alu
    alu.add wait=load|gemm rhs=8 loops=1,1,3 dst_stride=0,0,1 rhs_stride=0,0,1
    alui.max loops=1,1,3 dst_stride=0,0,1 src_stride=0,0,1 immediate=0
    requantize params=16 loops=1,1,3 dst_stride=0,0,1 src_stride=0,0,1 zero_point=-3 post=store
store:
    store.out wait=alu segment=data offset=0x40 shape=1,1,3
    sync.end
"""  # noqa: E501
