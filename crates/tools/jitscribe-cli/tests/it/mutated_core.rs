//! Core files of a process with a code log, of which a few words are not what they were.

use crate::common::{Bench, finish};
use crate::mutants::{announce, bytes_of_log, mutate, run, try_mutants};
use jitscribe::Scribe;

const PAGE: usize = 4096;

/// Where the log lies in the process.
const LOG: u64 = 0x7fff_0000_0000;

/// A core file: the heads of two segments, the code's page, and the log.
fn core() -> Vec<u8> {
    let scribe = Scribe::builder().build();
    // The segment of the code begins at a page.
    let memory: &'static [u8] = Box::leak(vec![0xc3; 2 * PAGE].into_boxed_slice());
    let code = &memory[memory.as_ptr().align_offset(PAGE)..][..PAGE];
    announce(&scribe, &code.as_chunks().0[..32]);
    let (_, log) = bytes_of_log(&scribe);

    let mut core = Vec::new();
    // ET_CORE for this machine, with two program headers right behind this one.
    core.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62_u16 };
    [4, machine].iter().for_each(|word| core.extend(word.to_le_bytes()));
    core.extend(1_u32.to_le_bytes());
    [0, 64, 0_u64].iter().for_each(|word| core.extend(word.to_le_bytes()));
    core.extend(0_u32.to_le_bytes());
    [64, 56, 2, 64, 0, 0_u16].iter().for_each(|word| core.extend(word.to_le_bytes()));
    let segments = [(code.as_ptr().addr() as u64, code), (LOG, log.as_slice())];
    let mut at = PAGE as u64;
    for (address, bytes) in segments {
        // PT_LOAD that may be read and written.
        [1, 6_u32].iter().for_each(|word| core.extend(word.to_le_bytes()));
        let size = bytes.len() as u64;
        let words = [at, address, 0, size, size, PAGE as u64];
        words.iter().for_each(|word| core.extend(word.to_le_bytes()));
        at += size;
    }
    core.resize(PAGE, 0);
    segments.iter().for_each(|(_, bytes)| core.extend(*bytes));
    core
}

#[test]
fn a_mutated_core_file_is_read_or_refused() {
    let sound = core();
    let bench = Bench::with("mutant.core", &sound);
    let dump = |what: &str| bench.jitscribe(&format!("dump --core mutant.core {what}"));
    let whole = finish(&mut dump("--json")).ok();
    assert!(whole.stdout.contains("function 31"), "{whole:?}");
    let log = 2 * PAGE;
    let stretches = [0..176, log..log + PAGE + 256, log..sound.len()];
    try_mutants("a core file", |numbers, seed| {
        let mut mutant = sound.clone();
        mutate(numbers, &mut mutant, &stretches);
        bench.write("mutant.core", &mutant);
        let what = ["--json", "--perf-map", "--elf objects --force"][numbers.next(3)];
        run(&dump(what), seed, &["mutant.core"])
    });
}
