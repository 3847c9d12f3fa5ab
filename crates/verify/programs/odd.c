/* Hand-written functions whose unwind information has unusual, but supported or refusable forms. */
volatile long sink;

long by_register(long);
long by_frame_pointer_late(long);
long undone(long);
long pushed_flags(long);
long in_r10(long);
long computed(long);

__attribute__((noinline)) long called(long value) { sink = value; return value + 1; }

__asm__(
    ".text\n"
    /* the CFA is in a register that a call keeps */
    ".globl by_register\n.type by_register, @function\nby_register:\n.cfi_startproc\n"
    "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\n"
    "lea 16(%rsp), %rbx\n.cfi_def_cfa %rbx, 0\n"
    "sub $40, %rsp\nand $-32, %rsp\n"
    "call called\n"
    "lea -16(%rbx), %rsp\n.cfi_def_cfa %rsp, 16\n"
    "pop %rbx\n.cfi_def_cfa_offset 8\n.cfi_restore %rbx\n"
    "ret\n.cfi_endproc\n.size by_register, .-by_register\n"
    /* rbp is saved low in the frame and set after other work */
    ".globl by_frame_pointer_late\n.type by_frame_pointer_late, @function\nby_frame_pointer_late:\n.cfi_startproc\n"
    "sub $56, %rsp\n.cfi_def_cfa_offset 64\n"
    "mov %rbp, 16(%rsp)\n.cfi_offset %rbp, -48\n"
    "lea 16(%rsp), %rbp\n.cfi_def_cfa %rbp, 48\n"
    "push %rdi\npush %rdi\ncall called\nadd $16, %rsp\n"
    "mov 16(%rsp), %rbp\n.cfi_def_cfa %rsp, 64\n.cfi_restore %rbp\n"
    "add $56, %rsp\n.cfi_def_cfa_offset 8\n"
    "ret\n.cfi_endproc\n.size by_frame_pointer_late, .-by_frame_pointer_late\n"
    /* an early return in the middle: remember and restore */
    ".globl undone\n.type undone, @function\nundone:\n.cfi_startproc\n"
    "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbp, -16\n"
    "mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
    "test %rdi, %rdi\njne 1f\n"
    ".cfi_remember_state\nleave\n.cfi_def_cfa %rsp, 8\n.cfi_restore %rbp\nret\n.cfi_restore_state\n"
    "1: sub $16, %rsp\ncall called\n"
    "leave\n.cfi_def_cfa %rsp, 8\n.cfi_restore %rbp\n"
    "ret\n.cfi_endproc\n.size undone, .-undone\n"
    /* pushes that are not of registers */
    ".globl pushed_flags\n.type pushed_flags, @function\npushed_flags:\n.cfi_startproc\n"
    "pushfq\n.cfi_adjust_cfa_offset 8\n"
    "push $5\n.cfi_adjust_cfa_offset 8\n"
    "pushq (%rsp)\n.cfi_adjust_cfa_offset 8\n"
    "call called\n"
    "pop %rdx\n.cfi_adjust_cfa_offset -8\n"
    "lea 8(%rsp), %rsp\n.cfi_adjust_cfa_offset -8\n"
    "popfq\n.cfi_adjust_cfa_offset -8\n"
    "ret\n.cfi_endproc\n.size pushed_flags, .-pushed_flags\n"
    /* the CFA in a register that a call may change */
    ".globl in_r10\n.type in_r10, @function\nin_r10:\n.cfi_startproc\n"
    "lea 8(%rsp), %r10\n.cfi_def_cfa %r10, 0\n"
    "and $-64, %rsp\nsub $128, %rsp\n"
    "mov %rdi, (%rsp)\nmov (%rsp), %rax\n"
    "lea -8(%r10), %rsp\n.cfi_def_cfa %rsp, 8\n"
    "ret\n.cfi_endproc\n.size in_r10, .-in_r10\n"
    /* the CFA by an expression: the word at rsp+8 */
    ".globl computed\n.type computed, @function\ncomputed:\n.cfi_startproc\n"
    "mov %rsp, %rax\n"
    "sub $104, %rsp\n.cfi_adjust_cfa_offset 104\n"
    "mov %rax, 8(%rsp)\n"
    ".cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8\n"
    "sub $0, %rsp\ncall called\n"
    "mov 8(%rsp), %rsp\n.cfi_def_cfa %rsp, 8\n"
    "ret\n.cfi_endproc\n.size computed, .-computed\n"
);

int main(void) {
    for (long i = 0; i < 3; i++) {
        sink = by_register(i) + by_frame_pointer_late(i) + undone(i);
        sink = pushed_flags(i) + in_r10(i) + computed(i);
    }
    return 0;
}
