//! Sets the soname, which programs look for at run time.

fn main() {
    // Changes with the first part of the version: then programs that are already linked no longer
    // work.
    const ABI: &str = "0";
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!(
            "cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libjitscribe.{ABI}.dylib"
        ),
        Ok("windows") => {}
        _ => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libjitscribe.so.{ABI}"),
    }
    println!("cargo:rerun-if-changed=build.rs");
}
