//! The integration tests, as one program.

mod built;
mod made;
mod syntax;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod difference;
    mod hostile;
    mod page;
}
