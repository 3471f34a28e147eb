//! The real Valgrind names announced code, in every tool.
//!
//! The program that Valgrind runs is this program itself, in a role.

// There is no harness to do this.
#![allow(clippy::print_stdout)]

/// Roles have their own machine code.
#[cfg(target_arch = "x86_64")]
mod jit;
#[cfg(target_arch = "x86_64")]
mod roles;
#[cfg(target_arch = "x86_64")]
mod run;
#[cfg(target_arch = "x86_64")]
mod tests;

#[cfg(not(target_arch = "x86_64"))]
fn main() {}

#[cfg(target_arch = "x86_64")]
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
        test();
        println!("test {name} ... ok, {:.1} s", began.elapsed().as_secs_f64());
    }
}
