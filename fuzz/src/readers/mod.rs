//! What each reader is put to: by the targets of any bytes, and by those of made files.

pub mod callgrind;
pub mod code_image;
pub mod code_index;
pub mod code_log;
pub mod crash_stream;
pub mod disassembly;
pub mod elf_frames;
pub mod elf_lines;
pub mod elf_symbols;
pub mod firefox_requests;
pub mod growing;
pub mod inject;
pub mod jitdump_check;
pub mod jitdump_codes;
pub mod jitdump_read;
pub mod perf_data;
pub mod perf_map;
pub mod process_context;
pub mod profile_recording;
pub mod push_answer;
pub mod push_divide;
pub mod push_spool;
pub mod source_map;
pub mod timeline;
pub mod v8_log;
pub mod valgrind_log;
