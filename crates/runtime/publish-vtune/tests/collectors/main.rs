//! A collector that is loaded gets each code, with all that was announced.
//!
//! The program that loads it is this program itself, in a role.

// There is no harness to do this.
#![allow(clippy::print_stdout)]

mod refusing;
mod roles;
mod run;
mod tests;

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
        test();
        println!("test {name} ... ok");
    }
}
