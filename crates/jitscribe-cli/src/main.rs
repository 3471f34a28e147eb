//! The jitscribe command.
fn main() {}
