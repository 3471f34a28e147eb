//! The integration tests, as one program.

mod agent;
mod agent_faults;
mod agent_files;
mod agent_images;
mod check;
mod common;
mod containers;
mod contract;
mod core_files;
mod demo;
mod diff;
mod dump;
mod export;
mod inject;
mod log_formats;
mod made;
mod mutants;
mod mutated_core;
mod mutated_log;
mod named_places;
mod process;
mod record;
mod report;
mod shell;
mod source_maps;
mod valgrind;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod agent_debuginfod;
}
