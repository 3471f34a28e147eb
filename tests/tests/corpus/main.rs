//! Files that other programs wrote, in the repository: no program is recorded.

mod callgrind;
mod counts;
mod dumps;
mod maps;
