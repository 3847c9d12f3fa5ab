# Functions with and without call frame information, and signal return trampolines that have none.
        .text
        .globl  described, bare_long, bare_short, undescribed, deep, after
        .type   described, @function
described:
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        nop
        pop     %rbp
        .cfi_def_cfa_offset 8
        .cfi_restore %rbp
        ret
        .cfi_endproc
        nop
bare_long:
        mov     $15, %rax
        syscall
        .fill   20, 1, 0x90
bare_short:
        mov     $15, %eax
        syscall
        .fill   40, 1, 0x90
undescribed:
        push    %rbp
        pop     %rbp
        ret
        .fill   24, 1, 0xcc
deep:
        .cfi_startproc
        .rept   100
        .cfi_remember_state
        push    %rax
        .cfi_adjust_cfa_offset 8
        .endr
        nop
        .rept   100
        pop     %rax
        .cfi_restore_state
        .endr
        ret
        .cfi_endproc
        .fill   8, 1, 0xcc
after:
        .cfi_startproc
        .cfi_undefined %rip
        ret
        .cfi_endproc
        .fill   32, 1, 0xcc
        .section .note.GNU-stack, "", @progbits
