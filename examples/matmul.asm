; C = requantize(A · Bᵀ + bias): a blocked matrix multiply, A 128×64, B 64×64, C 128×64, int8.
;
; A tile of activations is a row of 16 numbers, so A and C lie in memory as plain row-major
; matrices. B is packed into 4×4 weight tiles of 16×16 (output block, input block). The 128 rows
; go through the accelerator in four blocks of 32. Even blocks use the lower half of the inp, acc
; and out scratchpads, odd blocks the upper half: LOAD and STORE work on one half while GEMM and
; ALU work on the other. Tokens say when a half is full and when it is free again.

.config base

.segment micro_ops  size=16     access=read
.segment a          size=8192   access=read
.segment b          size=4096   access=read
.segment params     size=768    access=read     ; bias, multiplier, shift of each output block
.segment c          size=8192   access=write

.tensor a       segment=a       shape=128,64    dtype=int8
.tensor b       segment=b       shape=4,4,16,16 dtype=int8
.tensor params  segment=params  shape=4,3,16    dtype=int32
.tensor c       segment=c       shape=128,64    dtype=int8

.uops micro_ops
    uop dst=0   src=0   wgt=0       ; lower half
    uop dst=128 src=128 wgt=0       ; upper half

.code
constants:
    load.uop segment=micro_ops shape=1,1,2
    load.wgt segment=b         shape=1,1,16
    load.acc segment=params    sram=1024 shape=1,1,12               post=alu

block_0:
    load.inp segment=a shape=1,1,128                                post=gemm
    gemm wait=load flags=start|first_inner uop=0 loops=32,4,4 dst_stride=4,1,0 src_stride=4,0,1 wgt_stride=0,4,1  post=load|alu
    requantize wait=load|gemm params=1024 params_stride=3 loops=4,1,32 dst_stride=1,0,4 src_stride=1,0,4  post=gemm|store
    store.out wait=alu segment=c shape=1,1,128                      post=alu

block_1:
    load.inp segment=a sram=128 offset=0x800 shape=1,1,128          post=gemm
    gemm wait=load flags=start|first_inner uop=1 loops=32,4,4 dst_stride=4,1,0 src_stride=4,0,1 wgt_stride=0,4,1  post=load|alu
    requantize wait=gemm dst=128 src=128 params=1024 params_stride=3 loops=4,1,32 dst_stride=1,0,4 src_stride=1,0,4  post=gemm|store
    store.out wait=alu sram=128 segment=c offset=0x800 shape=1,1,128  post=alu

block_2:
    load.inp wait=gemm segment=a offset=0x1000 shape=1,1,128        post=gemm
    gemm wait=load|alu flags=start|first_inner uop=0 loops=32,4,4 dst_stride=4,1,0 src_stride=4,0,1 wgt_stride=0,4,1  post=alu
    requantize wait=gemm|store params=1024 params_stride=3 loops=4,1,32 dst_stride=1,0,4 src_stride=1,0,4  post=store
    store.out wait=alu segment=c offset=0x1000 shape=1,1,128

block_3:
    load.inp wait=gemm segment=a sram=128 offset=0x1800 shape=1,1,128  post=gemm
    gemm wait=load|alu flags=start|first_inner uop=1 loops=32,4,4 dst_stride=4,1,0 src_stride=4,0,1 wgt_stride=0,4,1  post=alu
    requantize wait=gemm|store dst=128 src=128 params=1024 params_stride=3 loops=4,1,32 dst_stride=1,0,4 src_stride=1,0,4  post=store
    store.out wait=alu sram=128 segment=c offset=0x1800 shape=1,1,128

    sync.end
