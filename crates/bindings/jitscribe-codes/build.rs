//! Sets the soname, which programs look for at run time.

fn main() {
    // Changes with the first part of the version: then programs that are already linked no longer work.
    const ABI: &str = "0";
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libjitscribe_codes.so.{ABI}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
