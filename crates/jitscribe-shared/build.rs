//! Gives the shared library the name that programs ask for at run time.

fn main() {
    // Changes with the first part of the version that breaks programs that are linked already.
    const ABI: &str = "0";
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libjitscribe.so.{ABI}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
