//! The files in which JIT compilers describe their code: their names, their places, and how to read them.

pub mod content;
mod damage;
mod image_name;
mod index;
mod name;
mod open;
mod recorded;
mod replaced;
mod translated;

pub use damage::{Damage, report_end};
pub use image_name::{
    code_list, code_list_name, image_name, is_image, number_of_image, pid_of_image, pid_of_jitted,
    pid_of_perf_image,
};
pub use index::Index;
pub use name::{
    Kind, Named, base_name, looks_like_dump, looks_like_marker, pid_in_name, pid_of_log,
    pid_of_v8_log,
};
pub use open::{
    Inode, PlainFiles, SourceFile, SourceFiles, Untrusted, check_readable_by_all,
    may_read_what_we_may, pid_in_header,
};
pub use recorded::{RecordedFiles, RecordedFunctions, is_build_id, is_library};
pub use replaced::ReplacedFiles;
pub use translated::as_jitdump;
