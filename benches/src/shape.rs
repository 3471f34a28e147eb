//! What the code of a workload looks like. It depends on nothing but its number, so that every run
//! measures the same.

/// Functions that share a source file.
const FUNCTIONS_PER_FILE: u32 = 50;

/// Functions begin at multiples of this, as compilers have it.
pub const ALIGN: u64 = 16;

/// Where a workload's code begins.
pub const ARENA: u64 = 0x7e00_0000_0000;

/// One made function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, some 20 bytes.
    pub name: String,
    /// Path of its source file.
    pub file: String,
    /// Line of its first instruction.
    pub line: u32,
    /// x86-64 code of 64 to 128 bytes that takes no arguments, touches no memory and returns.
    pub code: Vec<u8>,
    /// Offsets in the code at which its four lines begin.
    pub line_offsets: [u64; 4],
}

impl Function {
    /// Function `number` as compiled for the `epoch`th time: another name, code of the same size.
    #[must_use]
    pub fn new(number: u32, epoch: u32) -> Self {
        let (code, line_offsets) = code(number);
        Self {
            name: format!("handle_{number:06}.tier{epoch}"),
            file: format!("/srv/app/src/module_{:05}.js", number / FUNCTIONS_PER_FILE),
            line: 1 + number % FUNCTIONS_PER_FILE * 12,
            code,
            line_offsets,
        }
    }

    /// Bytes from the start of this function to that of the next.
    #[must_use]
    pub fn stride(&self) -> u64 {
        (self.code.len() as u64).next_multiple_of(ALIGN)
    }
}

/// A loop of additions, some hundred rounds.
fn code(number: u32) -> (Vec<u8>, [u64; 4]) {
    const ROUNDS: u32 = 100;
    const FRAME: usize = 9;
    const TAIL: usize = 6;
    const ADDITION: usize = 5;
    let size = 64 + (number.wrapping_mul(2_654_435_761) >> 16) as usize % 65;
    let additions = (size - FRAME - TAIL) / ADDITION;

    let mut code = Vec::with_capacity(size);
    code.extend([0x55, 0x48, 0x89, 0xe5]); // push %rbp; mov %rsp,%rbp
    code.push(0xb9); // mov $ROUNDS,%ecx
    code.extend(ROUNDS.to_le_bytes());
    for addition in 0..additions {
        code.push(0x05); // add $…,%eax
        code.extend((number + addition as u32).to_le_bytes());
    }
    let back = -((additions * ADDITION + 4) as i8);
    code.extend([0xff, 0xc9, 0x75, back.cast_unsigned()]); // dec %ecx; jnz
    code.extend([0x5d, 0xc3]); // pop %rbp; ret
    code.resize(size, 0xcc);
    let half = FRAME + additions / 2 * ADDITION;
    let end = FRAME + additions * ADDITION;
    (code, [0, 4, half as u64, end as u64])
}
