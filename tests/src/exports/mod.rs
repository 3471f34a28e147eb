//! Exported profiles, and the programs that read them.

pub mod made;
