//! The JVM unloads an agent that it does not like; what the agent left behind must not end the process then.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
