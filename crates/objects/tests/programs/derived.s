# Functions without CFI. A local label says what is expected of the instruction at it: none_N, sp8_N (CFA = rsp+8),
# fp16_N (CFA = rbp+16), end_N. All functions are called by `_start`, but for those that say otherwise.
        .text
        .globl  _start
_start:
        xor     %ebp, %ebp
        call    depths
        call    frame
        call    unbalanced
        call    overwrites
        call    forgets
        call    grows
        call    drops
        call    branches
        call    stops
        call    chains
        call    table
        call    thread
        call    fork
        call    pops
        call    tail_in_frame
        call    takes
        call    keeps_no_register
        hlt

        .macro  function name
        .p2align 4
        .type   \name, @function
\name:
        .endm

        function depths
sp8_1:  push    %rbx
sp16_1: sub     $0x20, %rsp
sp48_1: mov     %rdi, %rbx
sp48_2: call    frame
sp48_3: add     $0x20, %rsp
sp16_2: pop     %rbx
sp8_2:  ret

        function frame
sp8_3:  push    %rbp
sp16_3: mov     %rsp, %rbp
fp16_1: sub     %rdi, %rsp
fp16_2: and     $-32, %rsp
fp16_3: call    depths
fp16_4: leave
sp8_4:  ret

# A return with something left on the stack: a jump to what was pushed.
        function unbalanced
none_1: push    %rax
none_2: ret

# The return address is another afterwards.
        function overwrites
none_3: mov     %rax, (%rsp)
none_4: ret

# A register that functions keep is not given back.
        function forgets
none_5: push    %rax
none_6: mov     %rdi, %rbx
none_7: pop     %rax
none_8: ret

# Nobody knows how much room is taken.
        function grows
none_9: sub     %rdi, %rsp
none_10: call   depths
none_11: add    %rdi, %rsp
none_12: ret

# The return address is taken off the stack, and the code goes elsewhere: as longjmp does.
        function drops
none_13: mov    8(%rdi), %rsp
none_14: jmp    *(%rdi)

# Two ways of different depth to one place, which does not say which it is.
        function branches
none_15: test   %edi, %edi
none_16: je     1f
none_17: push   %rax
1:
none_18: call   depths
none_19: ret

# A call that does not come back, and behind it a function that nothing leads to but an address. What begins as functions do
# is one, but nothing shows where the return address of the other lies.
        function stops
sp8_5:  push    %rbx
sp16_4: mov     %rdi, %rbx
sp16_5: call    gone
        .p2align 4
none_20: mov    %rdi, %rax
none_21: mov    (%rdi), %rdi
none_22: jmp    1b

        function gone
sp8_6:  push    %rbx
sp16_6: mov     $60, %eax
sp16_7: syscall
sp16_8: hlt

# A call that does not come back, in front of code that another path leads to with another depth.
        function chains
sp8_7:  test    %edi, %edi
sp8_8:  jne     1f
sp8_9:  push    %rbx
sp16_9: call    *%rsi
1:
sp8_10: mov     %edi, %eax
sp8_11: ret

# What a jump through a table leads to is not known.
        function table
sp8_12: push    %rbx
sp16_10: cmp    $3, %edi
sp16_11: ja     2f
sp16_12: jmp    *(%rax, %rdi, 8)
none_23: inc    %ebx
none_24: jmp    2f
2:
sp16_13: pop    %rbx
sp8_13: ret

# A new thread begins behind the call, where the frame pointer is cleared.
        function thread
sp8_14: mov     $56, %eax
sp8_15: mov     %rdi, %r9
sp8_16: syscall
none_25: test   %eax, %eax
none_26: jnz    1f
none_27: xor    %ebp, %ebp
end_1:  pop     %rdi
end_2:  call    *%r9
end_3:  hlt
1:
none_28: ret

# The same call, but both sides return.
        function fork
sp8_17: mov     $56, %eax
sp8_18: xor     %esi, %esi
sp8_19: syscall
none_29: ret

# Behind the call rsp is not what it was, but the frame pointer is.
        function pops
sp8_20: push    %rbp
sp16_14: mov    %rsp, %rbp
fp16_5: push    %rdi
fp16_6: call    *%rsi
fp16_7: mov     %rbp, %rsp
fp16_8: pop     %rbp
sp8_21: ret

# A jump to another function's middle is this function's code; one to its beginning is not, unless the stack is given back.
        function tail_in_frame
none_30: push   %rbx
none_31: jmp    depths

# Addresses: one that is jumped to when the stack was given back, one of a function, one of a label.
        function takes
sp8_22: push    %rbx
sp16_15: mov    %rdi, %rbx
sp16_16: lea    never_named(%rip), %rdi
sp16_17: lea    label(%rip), %rsi
sp16_26: lea    imports(%rip), %rdx
sp16_18: call   depths
sp16_19: lea    continued(%rip), %rax
sp16_20: pop    %rbx
sp8_23: jmp     *%rax

        .p2align 4
never_named:
sp8_24: push    %rbp
sp16_21: mov    %rdi, %rbp
sp16_22: call   gone

        .p2align 4
continued:
sp8_25: sub     $8, %rsp
sp16_23: call   *%rdi
sp16_24: hlt

# An address of another file: nothing shows whether what lies there comes back.
        .p2align 4
imports:
sp8_29: push    %rbx
sp16_25: call   *pointer(%rip)
none_34: hlt

        .p2align 4
label:
none_32: mov    %rax, %rdx
none_33: jmp    *%rdx

        function keeps_no_register
sp8_26: mov     %rdi, %rcx
sp8_27: rep     movsb
sp8_28: ret

        .data
pointer:
        .quad   0
