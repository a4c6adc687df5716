/* Where the monitor begins, how it is interrupted, and how it calls code that may go wrong. */

    .section .start, "ax"
    .global _start
_start:
    j begin
    .balign 32              /* VexRiscv's traps come here until mtvec says otherwise */

    .global trap_entry
trap_entry:
    csrr gp, mcause         /* nobody else uses gp: an exception may come with a bad stack */
    bgez gp, exception
    addi sp, sp, -64        /* everything that a C function may change */
    sw ra, 0(sp)
    sw t0, 4(sp)
    sw t1, 8(sp)
    sw t2, 12(sp)
    sw a0, 16(sp)
    sw a1, 20(sp)
    sw a2, 24(sp)
    sw a3, 28(sp)
    sw a4, 32(sp)
    sw a5, 36(sp)
    sw a6, 40(sp)
    sw a7, 44(sp)
    sw t3, 48(sp)
    sw t4, 52(sp)
    sw t5, 56(sp)
    sw t6, 60(sp)
    call interrupted
    lw ra, 0(sp)
    lw t0, 4(sp)
    lw t1, 8(sp)
    lw t2, 12(sp)
    lw a0, 16(sp)
    lw a1, 20(sp)
    lw a2, 24(sp)
    lw a3, 28(sp)
    lw a4, 32(sp)
    lw a5, 36(sp)
    lw a6, 40(sp)
    lw a7, 44(sp)
    lw t3, 48(sp)
    lw t4, 52(sp)
    lw t5, 56(sp)
    lw t6, 60(sp)
    addi sp, sp, 64
    mret

exception:                  /* whoever was called by `guarded` is given up */
    la t0, trap_cause
    sw gp, 0(t0)
    csrr a1, mepc
    sw a1, 4(t0)
    csrr a1, mtval
    sw a1, 8(t0)
    lw sp, guard_stack
    beqz sp, _start         /* nobody is guarded: begin anew */
    li a0, -1
    j leave

/* int guarded(int (*function)(void *), void *argument, uint32_t stack)
   What the function returns, or -1 after an exception. On a stack of its own, unless that is 0. */
    .global guarded
guarded:
    addi sp, sp, -64
    sw ra, 0(sp)
    sw s0, 4(sp)
    sw s1, 8(sp)
    sw s2, 12(sp)
    sw s3, 16(sp)
    sw s4, 20(sp)
    sw s5, 24(sp)
    sw s6, 28(sp)
    sw s7, 32(sp)
    sw s8, 36(sp)
    sw s9, 40(sp)
    sw s10, 44(sp)
    sw s11, 48(sp)
    la t0, guard_stack
    lw t1, 0(t0)            /* guards may be inside guards */
    sw t1, 52(sp)
    sw sp, 0(t0)
    mv t2, a0
    mv a0, a1
    beqz a2, 1f
    mv sp, a2
1:  jalr t2
    lw sp, guard_stack
leave:
    lw t1, 52(sp)
    la t0, guard_stack
    sw t1, 0(t0)
    lw ra, 0(sp)
    lw s0, 4(sp)
    lw s1, 8(sp)
    lw s2, 12(sp)
    lw s3, 16(sp)
    lw s4, 20(sp)
    lw s5, 24(sp)
    lw s6, 28(sp)
    lw s7, 32(sp)
    lw s8, 36(sp)
    lw s9, 40(sp)
    lw s10, 44(sp)
    lw s11, 48(sp)
    addi sp, sp, 64
    ret

begin:
    la sp, stack_top
    la t0, trap_entry
    csrw mtvec, t0
    csrw mstatus, zero
    la t0, bss_start
    la t1, bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  li t0, 0x800            /* external interrupts; mstatus lets them through only in `wait` */
    csrw mie, t0
    call monitor
    j begin

    .section .bss
    .balign 4
    .global trap_cause
trap_cause:                 /* mcause, mepc, mtval */
    .space 12
guard_stack:
    .space 4
