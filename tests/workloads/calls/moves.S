// The ways that no compiler takes, and every JIT.

        .text

        .macro function name
        .p2align 4
        .globl \name
        .hidden \name
        .type \name, @function
\name:
        .endm

        .macro end name
        .size \name, . - \name
        .endm

// A loop whose head is the function's first instruction.
function self_jump
        sub $1, %rdi
        jg self_jump
        lea 5(%rdi), %rax
        ret
end self_jump

// The same, called only once.
function self_jump_once
        sub $1, %rdi
        jg self_jump_once
        lea 7(%rdi), %rax
        ret
end self_jump_once

// The same, called inside: its first instruction is not executed in the first round.
function self_jump_inside
        add $3, %rsi
.Lself_inside:
        sub $1, %rdi
        jg self_jump_inside
        lea (%rdi, %rsi), %rax
        ret
end self_jump_inside

function call_self_jump_inside
        xor %esi, %esi
        call .Lself_inside
        ret
end call_self_jump_inside

// A ring in which one function jumps from two places to the other.
function ring_from_two
        test $1, %dil
        je 1f
        jmp ring_to_two
1:      jmp ring_to_two
end ring_from_two

function ring_to_two
        sub $1, %rdi
        jg ring_from_two
        lea 2(%rdi), %rax
        ret
end ring_to_two

// A tail call to C, and one by a conditional jump.
function chain_in
        test $1, %edi
        je leaf
        add $2, %rdi
        jmp chain_a
end chain_in

// A call of what is not a function's beginning.
function mid_target
        xor %eax, %eax
        add $3, %rdi
.Lmid_inner:
        lea 1(%rdi), %rax
        test $2, %dil
        je 1f
        add $7, %rax
1:      ret
end mid_target

function mid_call
        push %rdi
        call .Lmid_inner
        pop %rdi
        push %rax
        call mid_target
        pop %rdx
        add %rdx, %rax
        ret
end mid_call

// A jump into the middle of another function, which nobody else enters.
function only_middle
        ud2
.Lonly_inner:
        lea 9(%rdi), %rax
        ret
end only_middle

function mid_jump
        add $1, %rdi
        test $4, %dil
        jne .Lonly_inner
        lea (%rdi, %rdi), %rax
        ret
end mid_jump

// A return that nobody called for, to another function.
function push_ret
        add $1, %rdi
        lea bottom(%rip), %rdx
        push %rdx
        ret
end push_ret

// The same to a place of its own.
function push_ret_inside
        lea 1f(%rip), %rdx
        push %rdx
        ret
        ud2
1:      lea 3(%rdi), %rax
        ret
end push_ret_inside

// A call of the next instruction, as code does that asks where it is.
function call_next
        call 1f
1:      pop %rdx
        sub %rdx, %rdx
        lea 3(%rdi, %rdx), %rax
        ret
end call_next

// A function that ends in the next one's beginning.
function fall_into
        add $4, %rdi
        test $1, %dil
        jne fallen_into
        // Padding would be a block of neither.
        nop
        .size fall_into, . - fall_into
        .globl fallen_into
        .hidden fallen_into
        .type fallen_into, @function
fallen_into:
        lea 1(%rdi), %rax
        ret
end fallen_into

// Recursion by a real call.
function own_entry_again
        mov $1, %eax
        test %rdi, %rdi
        jle 1f
        push %rdi
        sub $1, %rdi
        call own_entry_again
        pop %rdi
        add %rdi, %rax
1:      ret
end own_entry_again

// Two jumps from different places of one function to another.
function from_two
        test $1, %dil
        je 1f
        jmp leaf
1:      add $1, %rdi
        jmp leaf
end from_two

// Entered at its beginning by a jump, and in the middle by another.
function two_heads
        test $1, %dil
        je .Ltwo_inner
        jmp two_target
end two_heads

function two_target
        add $1, %rdi
.Ltwo_inner:
        lea 2(%rdi), %rax
        ret
end two_target

        .section .note.GNU-stack, "", @progbits
