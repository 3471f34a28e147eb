//! The integration tests, as one program.

mod built;
mod made;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod difference;
    mod hostile;
    mod page;
    mod shown;
    mod syntax;
}
