//! Real tools read an arena's file like any other.
//!
//! The programs that they inspect are this program itself, in a role.

// There is no harness to do this.
#![allow(clippy::print_stdout)]
// perf, gdb, lldb and heaptrack do not see programs of another machine, which QEMU runs.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

/// Roles have their own machine code.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod jit;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod roles;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod run;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn main() {}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn main() {
    if let Ok(role) = std::env::var("ROLE") {
        return roles::play(&role);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_flag = |argument: &&String| argument.starts_with('-');
    let wanted = arguments.iter().find(|argument| !is_flag(argument));
    let is_list = arguments.iter().any(|argument| argument == "--list");
    for (name, test) in tests::ALL {
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        if is_list {
            println!("{name}: test");
            continue;
        }
        let began = std::time::Instant::now();
        test(tempfile::tempdir().unwrap().path());
        println!("test {name} ... ok, {:.1} s", began.elapsed().as_secs_f64());
    }
}
