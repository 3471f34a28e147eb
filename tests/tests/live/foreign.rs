//! Dumps of other machines: big-endian s390x (V8, LLVM), and 32-bit ARM with the Thumb bit (JavaScriptCore). Their
//! images are the dump's machine's, and whole.

use std::path::{Path, PathBuf};

use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::{run, tool};

/// The images of one dump of the archive.
fn images(corpus: &Corpus, dump: &str) -> Vec<PathBuf> {
    let folder = corpus.scratch().join("images");
    run(jitscribe().args(["dump", "--elf"]).arg(&folder).arg(corpus.file(dump)));
    let files = std::fs::read_dir(&folder).expect("the images");
    let mut images: Vec<PathBuf> = files.map(|file| file.expect("an image").path()).collect();
    images.sort();
    images
}

/// How many functions an image has, which is to be for `machine` and without a fault.
fn functions(image: &Path, machine: &str) -> usize {
    let header = run(tool("llvm-readelf").arg("-h").arg(image)).stdout;
    assert!(header.contains(machine), "{header}");
    let verified = run(tool("llvm-dwarfdump").arg("--verify").arg(image)).stdout;
    assert!(verified.contains("No errors."), "{verified}");
    let symbols = run(tool("llvm-readelf").arg("-sW").arg(image)).stdout;
    let (_, table) = symbols.split_once("Symbol table '.symtab'").expect("symbols");
    table.lines().filter(|line| line.contains(" FUNC ")).count()
}

#[test]
fn v8_on_s390x() {
    let corpus = Corpus::unpack("foreign");
    let counts: Vec<usize> = images(&corpus, "s390x/out/jit-24576.dump")
        .iter()
        .map(|image| functions(image, "IBM S/390"))
        .collect();
    assert_eq!(counts, [1332, 2182]);
}

#[test]
fn llvm_on_s390x() {
    let corpus = Corpus::unpack("foreign");
    let dump = "s390x/out/.debug/jit/llvm-IR-jit-20261121-bef9cf/jit-24560.dump";
    let [image] = images(&corpus, dump).try_into().expect("one image");
    assert_eq!(functions(&image, "IBM S/390"), 4);
}

#[test]
fn javascriptcore_on_32_bit_arm_in_thumb_code() {
    let corpus = Corpus::unpack("foreign");
    let [image] = images(&corpus, "armhf/out/jit-25215-25208.dump").try_into().expect("one image");
    assert_eq!(functions(&image, "ARM"), 195);
    let symbols = run(tool("llvm-readelf").arg("-sW").arg(&image)).stdout;
    let thumb = symbols.lines().filter(|line| line.contains(" FUNC ")).all(|line| {
        let value = line.split_whitespace().nth(1).expect("a value");
        u64::from_str_radix(value, 16).expect("a number") & 1 == 1
    });
    assert!(thumb, "the symbols of Thumb code have the low bit set\n{symbols}");
}
