//! The unwinder of Windows.
#![allow(unsafe_code)]

use std::ptr;

use unwind_info::windows::Piece;
use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, IMAGE_RUNTIME_FUNCTION_ENTRY, IMAGE_RUNTIME_FUNCTION_ENTRY_0, RtlVirtualUnwind,
};

use super::windows::Machine;

/// The state of the caller. The stack must be where the machine's registers say.
pub fn step(machine: &Machine, code: &[u8], pieces: &[Piece], infos: &[u8]) -> Machine {
    // Consecutive, because everything is described by distances from the beginning.
    let infos_at = code.len().next_multiple_of(8);
    let mut image = vec![0_u64; (infos_at + infos.len()).div_ceil(8)];
    // SAFETY: any bytes are words, of which there are as many.
    let (_, bytes, _) = unsafe { image.align_to_mut::<u8>() };
    bytes[..code.len()].copy_from_slice(code);
    bytes[infos_at..infos_at + infos.len()].copy_from_slice(infos);
    let base = bytes.as_ptr().addr() as u64;
    let at = machine.rip as u32;
    let piece = pieces.iter().find(|piece| (piece.begin..piece.end).contains(&at)).unwrap();
    let function = IMAGE_RUNTIME_FUNCTION_ENTRY {
        BeginAddress: piece.begin,
        EndAddress: piece.end,
        Anonymous: IMAGE_RUNTIME_FUNCTION_ENTRY_0 {
            UnwindInfoAddress: infos_at as u32 + piece.info,
        },
    };

    let mut context = CONTEXT::default();
    let general = |context: &mut CONTEXT| {
        let [rax, rcx, rdx, rbx] = [context.Rax, context.Rcx, context.Rdx, context.Rbx];
        let [rsp, rbp, rsi, rdi] = [context.Rsp, context.Rbp, context.Rsi, context.Rdi];
        let [r8, r9, r10, r11] = [context.R8, context.R9, context.R10, context.R11];
        let [r12, r13, r14, r15] = [context.R12, context.R13, context.R14, context.R15];
        [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15]
    };
    let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] =
        machine.general;
    (context.Rax, context.Rcx, context.Rdx, context.Rbx) = (rax, rcx, rdx, rbx);
    (context.Rsp, context.Rbp, context.Rsi, context.Rdi) = (rsp, rbp, rsi, rdi);
    (context.R8, context.R9, context.R10, context.R11) = (r8, r9, r10, r11);
    (context.R12, context.R13, context.R14, context.R15) = (r12, r13, r14, r15);
    context.Rip = base + machine.rip;
    // SAFETY: this member of the union is what the registers are by name.
    let xmm = unsafe { &mut context.Anonymous.Anonymous };
    let xmm: [&mut _; 10] = [
        &mut xmm.Xmm6,
        &mut xmm.Xmm7,
        &mut xmm.Xmm8,
        &mut xmm.Xmm9,
        &mut xmm.Xmm10,
        &mut xmm.Xmm11,
        &mut xmm.Xmm12,
        &mut xmm.Xmm13,
        &mut xmm.Xmm14,
        &mut xmm.Xmm15,
    ];
    for (register, value) in xmm.into_iter().zip(&machine.xmm[6..]) {
        (register.Low, register.High) = (*value as u64, (*value >> 64) as i64);
    }

    let (mut data, mut frame) = (ptr::null_mut(), 0);
    let rip = context.Rip;
    // SAFETY: function, code and information have the form that Windows expects, and so has the stack, as the caller guarantees.
    unsafe {
        RtlVirtualUnwind(
            0,
            base,
            rip,
            &function,
            &mut context,
            &mut data,
            &mut frame,
            ptr::null_mut(),
        );
    }
    let mut found = Machine { rip: context.Rip, general: general(&mut context), xmm: machine.xmm };
    // SAFETY: as above.
    let xmm = unsafe { context.Anonymous.Anonymous };
    let xmm = [
        xmm.Xmm6, xmm.Xmm7, xmm.Xmm8, xmm.Xmm9, xmm.Xmm10, xmm.Xmm11, xmm.Xmm12, xmm.Xmm13,
        xmm.Xmm14, xmm.Xmm15,
    ];
    for (known, register) in found.xmm[6..].iter_mut().zip(xmm) {
        *known = u128::from(register.Low) | u128::from(register.High as u64) << 64;
    }
    found
}
