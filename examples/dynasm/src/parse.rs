//! Brainfuck: a text as instructions with their places.

use std::fmt;

/// What is done, with runs of the same instruction taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    /// Moves the head by so many cells.
    Move(i32),
    /// Adds to the cell, modulo 256.
    Add(u8),
    Output,
    /// Sets the cell to 0: there is no input.
    Input,
    /// Skips to behind the instruction at this index if the cell is 0.
    Open(usize),
    /// Goes back to the instruction at this index if the cell is not 0.
    Close(usize),
}

/// An instruction and where it stands, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) what: Do,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A bracket without its pair.
#[derive(Debug)]
pub(crate) struct Unpaired {
    line: u32,
    column: u32,
}

impl fmt::Display for Unpaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: a bracket has no pair", self.line, self.column)
    }
}

pub(crate) fn program(source: &[u8]) -> Result<Vec<Instruction>, Unpaired> {
    let mut program: Vec<Instruction> = Vec::new();
    let mut open = Vec::new();
    let (mut line, mut column) = (1, 0);
    for byte in source {
        column += 1;
        let what = match byte {
            b'\n' => {
                (line, column) = (line + 1, 0);
                continue;
            }
            b'<' => Do::Move(-1),
            b'>' => Do::Move(1),
            b'+' => Do::Add(1),
            b'-' => Do::Add(255),
            b'.' => Do::Output,
            b',' => Do::Input,
            b'[' => {
                open.push(program.len());
                Do::Open(0)
            }
            b']' => {
                let start = open.pop().ok_or(Unpaired { line, column })?;
                program[start].what = Do::Open(program.len());
                Do::Close(start)
            }
            _ => continue,
        };
        let last = program.last_mut().map(|last| &mut last.what);
        match (last, what) {
            (Some(Do::Move(by)), Do::Move(more)) if by.checked_add(more).is_some() => *by += more,
            (Some(Do::Add(by)), Do::Add(more)) => *by = by.wrapping_add(more),
            _ => program.push(Instruction { what, line, column }),
        }
    }
    match open.pop() {
        Some(at) => Err(Unpaired { line: program[at].line, column: program[at].column }),
        None => Ok(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_taken_together_and_brackets_know_their_pair() {
        let told: Vec<_> = program(b"++-\n >>[x[-]<]")
            .unwrap()
            .iter()
            .map(|i| (i.what, i.line, i.column))
            .collect();
        let expected = [
            (Do::Add(1), 1, 1),
            (Do::Move(2), 2, 2),
            (Do::Open(7), 2, 4),
            (Do::Open(5), 2, 6),
            (Do::Add(255), 2, 7),
            (Do::Close(3), 2, 8),
            (Do::Move(-1), 2, 9),
            (Do::Close(2), 2, 10),
        ];
        assert_eq!(told, expected);
        assert_eq!(program(b"[[]").unwrap_err().to_string(), "1:1: a bracket has no pair");
        assert_eq!(program(b"\n]").unwrap_err().to_string(), "2:1: a bracket has no pair");
    }
}
