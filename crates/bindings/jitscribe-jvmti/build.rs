//! Makes the agent impossible to unload. The JVM unloads an agent that fails; what the agent left behind must not end the
//! process then.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
