//! Makes the addon impossible to unload: V8 may still call it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
