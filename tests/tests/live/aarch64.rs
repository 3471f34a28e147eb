//! AArch64: a real runtime of that machine, which QEMU's user mode runs, and recordings of such a machine on this one.
//!
//! The recordings are synthetic, as QEMU has no events of perf: an address in each code, after the time at which it was loaded. What they lead to is
//! compared with stock `perf inject --jit`, and the images with the dump itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::folder::shared_folder;
use end_to_end::jitscribe::jitscribe;
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::sampled::Dump;
use end_to_end::tool::{cache, ended, run, tool};
use tempfile::TempDir;

/// A program of Debian's for arm64, under QEMU.
fn arm64(program: &str) -> Command {
    let (qemu, root) = (cache().join("qemu/usr/bin/qemu-aarch64"), cache().join("arm64"));
    assert!(
        qemu.is_file() && root.is_dir(),
        "no {} or {}: run scripts/setup.sh test",
        qemu.display(),
        root.display()
    );
    let mut command = Command::new(qemu);
    command.arg("-L").arg(&root).arg(root.join("usr/bin").join(program));
    command
}

/// The only file in a folder whose name begins so.
fn file(folder: &Path, begin: &str) -> PathBuf {
    let names =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = names
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin))
        })
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// The dump of node, which has run the usual work.
fn node() -> PathBuf {
    let folder = shared_folder("node-on-aarch64", |folder| {
        run(arm64("node").arg("--perf-prof").arg(workload("spin.js")).current_dir(folder));
    });
    file(&folder, "jit-")
}

const AARCH64: u32 = 183;

#[test]
fn a_recording_of_node_on_aarch64() {
    let folder = TempDir::with_prefix("jitscribe-aarch64-").expect("a folder");
    let path = node();
    let dump = Dump::read(&path);
    assert_eq!(dump.machine, AARCH64);
    assert!(dump.loads.len() > 500, "{}", dump.loads.len());
    let checked = ended(jitscribe().arg("check").arg(&path)).stdout;
    assert!(checked.contains(&format!("jitdump, {} codes", dump.loads.len())), "{checked}");
    // node's mistakes are the same as on x86-64: the bias of 64 bytes, and names from memory that it has freed.
    assert!(checked.contains("addresses are 0x40 too high"), "{checked}");
    let errors = checked.lines().filter(|line| line.contains("error: "));
    assert!(errors.clone().all(|line| line.contains("debug-garbled")), "{checked}");

    let data = folder.path().join("perf.data");
    dump.recording(&path, "aarch64").write(&data);
    let perf = Perf::installed();
    let (stock, own) = (folder.path().join("stock.data"), folder.path().join("own.data"));
    run(perf.command().args(["inject", "--jit", "-i"]).arg(&data).arg("-o").arg(&stock));
    run(jitscribe().args(["inject", "-i"]).arg(&data).arg("-o").arg(&own));
    let names = |data: &Path| {
        let script = ["script", "-F", "time,ip,sym", "--ns", "-i"];
        run(perf.command().args(script).arg(data)).stdout
    };
    let (stock, own) = (names(&stock), names(&own));
    assert_eq!(own.lines().count(), dump.loads.len());
    let different: Vec<_> =
        stock.lines().zip(own.lines()).filter(|(one, other)| one != other).collect();
    assert!(different.is_empty(), "{} differ: {:#?}", different.len(), &different[..5]);
    assert!(!own.contains("[unknown]"), "{own}");
    assert!(own.contains("sieve") && own.contains("fib"), "{own}");
}

/// `jitscribe dump --elf`: objects for the machine, whose code is the dump's.
#[test]
fn images_are_for_aarch64() {
    let folder = TempDir::with_prefix("jitscribe-aarch64-").expect("a folder");
    let path = node();
    let dump = Dump::read(&path);
    let images = folder.path().join("images");
    run(jitscribe().args(["dump", "--elf"]).arg(&images).arg(&path));
    let mut wanted: BTreeMap<&str, Vec<&[u8]>> = BTreeMap::new();
    for load in &dump.loads {
        wanted.entry(&load.name).or_default().push(&load.code);
    }
    let mut compared = 0;
    for image in fs::read_dir(&images).expect("images") {
        let image = image.expect("an image").path();
        let header = run(tool("readelf").arg("-hSW").arg(&image)).stdout;
        assert!(header.contains("AArch64"), "{header}");
        let text = header.lines().find(|line| line.contains(" .text ")).expect("a .text");
        let words: Vec<&str> =
            text.split(']').nth(1).expect("columns").split_whitespace().collect();
        let hex = |word: &str| u64::from_str_radix(word, 16).expect("a number");
        let (start, offset, bytes) =
            (hex(words[2]), hex(words[3]), fs::read(&image).expect("bytes"));
        let symbols = run(tool("nm").args(["-S", "--defined-only"]).arg(&image)).stdout;
        for line in symbols.lines() {
            // Sections have no size.
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [address, size, "T" | "t", name] = words[..] else { continue };
            let at = (hex(address) - start + offset) as usize;
            let code = &bytes[at..at + hex(size) as usize];
            let found = wanted.get(name).is_some_and(|codes| codes.contains(&code));
            assert!(found, "{line}");
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared}");
}

/// Mono writes a perf map, which has a name for each address of its code.
#[test]
fn a_map_of_mono_on_aarch64() {
    let folder = TempDir::with_prefix("jitscribe-aarch64-").expect("a folder");
    let program = folder.path().join("Spin.exe");
    run(tool("mcs").arg(format!("-out:{}", program.display())).arg(workload("Spin.cs")));
    let mut mono = arm64("mono-sgen").arg("--jitmap").arg(&program).spawn().expect("QEMU");
    let map = PathBuf::from(format!("/tmp/perf-{}.map", mono.id()));
    assert!(mono.wait().expect("an end").success());
    let checked = run(jitscribe().arg("check").arg(&map));
    let text = fs::read_to_string(&map).expect("the map");
    fs::remove_file(&map).expect("the map");
    assert!(!checked.stdout.contains("error"), "{}", checked.stdout);
    for name in ["Spin:Fib", "Spin:Largest", "Spin:Main"] {
        assert!(text.contains(name), "{text}");
    }
}
