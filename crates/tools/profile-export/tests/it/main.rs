//! The integration tests, as one program.

mod known;
mod made;
mod readers;
mod stacks;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod consumers;
}
