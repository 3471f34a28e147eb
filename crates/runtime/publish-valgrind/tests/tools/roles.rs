//! The programs that Valgrind runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use publish_valgrind::{Code, Line, Options, Valgrind};

use crate::jit::{
    CALL, COUNT, Function, INLINED, Memory, READ, READ_EXECUTE, READ_WRITE, SOURCE, chosen_part,
    freed_block, in_a_fork, leak,
};

/// Valgrind 3.19 and 3.24 name no function at 0x70_0000_0000, whichever way they learn about it.
const BASE: usize = 0x71_2345_6000;

fn publisher() -> Valgrind {
    let folder = std::env::var_os("ROLE_DIR").unwrap();
    Valgrind::create(Options::new(folder).reporter(|why| panic!("{why}"))).unwrap()
}

pub fn play(role: &str) {
    if let Some(numbers) = role.strip_prefix("mappings ") {
        let mut numbers = numbers.split(' ').map(|number| number.parse().unwrap());
        return mappings([(); 4].map(|()| numbers.next().unwrap()));
    }
    match role {
        "calls" => calls(),
        "inlined" => inlined(),
        "layouts" => layouts(),
        "heap" => heap(),
        "full" => full(),
        "many" => many(),
        "parallel" => parallel(),
        "chosen 0" => chosen(0),
        "chosen 100" => chosen(100),
        "rejit" => rejit(),
        "remap" => remap(),
        "moves" => moves(),
        "threads" => threads(),
        "fork" => fork(),
        "race" => race(),
        other => panic!("no role is called {other}"),
    }
}

/// An invalid read in jitted code, a leak below it, and some time spent.
fn calls() {
    let valgrind = publisher();
    let memory = Memory::private(BASE, 1 << 16);
    memory.put(&valgrind, 0x100, &CALL);
    memory.put(&valgrind, 0x200, &READ);
    memory.put(&valgrind, 0x300, &COUNT);
    let at = |offset| memory.address + offset;
    memory.run(0x100, leak as *const () as usize, 0);
    memory.run(0x100, at(0x200), freed_block());
    memory.run(0x100, at(0x300), 1000);
}

/// Calls that were inlined, in code that is announced again and again, and then moved.
fn inlined() {
    let valgrind = publisher();
    let memory = Memory::private(BASE, 1 << 14);
    memory.put(&valgrind, 0x100, &CALL);
    for _ in 0..200 {
        memory.put(&valgrind, 0x200, &INLINED);
    }
    memory.put(&valgrind, 0x280, &INLINED);
    memory.run(0x100, memory.address + 0x200, freed_block());
    memory.write(0x1300, INLINED.bytes);
    let at = |offset: usize| (memory.address + offset) as u64;
    valgrind.moved(at(0x280), at(0x1300), INLINED.bytes.len() as u64);
    memory.run(0x100, memory.address + 0x1300, freed_block());
}

/// Other kinds of memory: mapped twice; protected page by page; on the `brk` heap; next to code that is never
/// announced.
fn layouts() {
    let valgrind = publisher();
    let twice = Memory::twice(1 << 14);
    twice.put_named(&valgrind, 0x80, "in_twice", &COUNT);
    twice.run(0x80, 1000, 0);
    twice.put_named(&valgrind, 0x1080, "in_twice_too", &COUNT);
    twice.run(0x1080, 1000, 0);
    twice.run(0x80, 1000, 0);

    let memory = Memory::private(BASE, 1 << 16);
    for page in 0..16 {
        memory.write(page * 4096, COUNT.bytes);
        memory.protect(page, READ_EXECUTE);
        memory.announce(&valgrind, page * 4096, &format!("in_page_{page}"), &COUNT);
        memory.run(page * 4096, 100, 0);
        // The others become writable, and back.
        for other in (0..page).step_by(3) {
            memory.protect(other, READ_WRITE);
            memory.write(other * 4096 + 8, &[page as u8]);
        }
        let large = Function { name: "", bytes: &COUNT.bytes[..1], ..COUNT };
        memory.announce(&valgrind, page * 4096 + 0x800, "not_run", &large);
        for other in (0..page).step_by(3) {
            memory.protect(other, READ_EXECUTE);
            memory.run(other * 4096, 100, 0);
        }
        assert_eq!(memory.address, BASE);
    }
}

/// Code on the heap, which remains in use.
fn heap() {
    let valgrind = publisher();
    let mut kept = Vec::new();
    for number in 0..20_usize {
        let memory = Memory::on_the_heap(5000);
        for offset in [0, 4950] {
            memory.put_named(&valgrind, offset, &format!("on_heap_{number}_{offset}"), &COUNT);
        }
        kept.extend((0..200).map(|size| vec![number; size]));
        memory.run(0, 1000, 0);
        memory.run(4950, 1000, 0);
    }
    assert!(kept.iter().enumerate().all(|(at, each)| each.iter().all(|&it| it == at / 200)));
}

/// Code that is announced until the disk is full, and afterwards.
fn full() {
    let folder = std::path::PathBuf::from(std::env::var_os("ROLE_DIR").unwrap()).join("small");
    let said = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&said);
    let options = Options::new(&folder);
    let options = options.reporter(move |why| listener.lock().unwrap().push(why.to_owned()));
    let valgrind = Valgrind::create(options).unwrap();
    let memory = Memory::private(BASE, 1 << 21);
    let mut number = 0;
    // Files of their own, and one that is rewritten.
    while !valgrind.is_off() {
        assert!(number < 100, "the disk is large");
        for offset in [(number + 1) << 14, 16 * number] {
            memory.put_named(&valgrind, offset, &format!("fills_{offset}"), &COUNT);
            memory.run(offset, 10, 0);
        }
        number += 1;
    }
    memory.put_named(&valgrind, 16 * number, "too_late", &COUNT);
    memory.run(16 * number, 10, 0);
    let said = said.lock().unwrap();
    assert!(matches!(&said[..], [why] if why.contains("No space left on device")), "{said:?}");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("jit-"), "{name} was left behind");
    }
}

/// Ten thousand functions, announced and run one at a time.
fn many() {
    let valgrind = publisher();
    let count: usize = std::env::var("ROLE_COUNT").map_or(10_000, |count| count.parse().unwrap());
    let memory = Memory::private(BASE, (count * 112).next_multiple_of(4096));
    for number in 0..count {
        memory.put_named(&valgrind, number * 112, &format!("many_{number}"), &COUNT);
        memory.run(number * 112, 10, 0);
    }
    for number in 0..count {
        memory.run(number * 112, 10, 0);
    }
}

/// So many functions, each with a mapping of its own, as MoarVM's have. The last ones are announced: so many in ascending order,
/// and so many in descending order. With `announced` 0, they are announced as code without bytes, which is left out.
fn mappings([count, ascending, descending, announced]: [usize; 4]) {
    let bytes = if announced == 0 { &[] } else { COUNT.bytes };
    let valgrind = publisher();
    let memory = Memory::private(BASE, count * 4096);
    for number in 0..count {
        memory.write(number * 4096, COUNT.bytes);
        // Adjacent mappings with the same protection would be one.
        if number % 2 == 0 {
            memory.protect(number, READ_EXECUTE);
        }
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.lines().count() > count);
    let lines = COUNT.lines.iter().map(|&(offset, line)| Line::new(offset, SOURCE, line));
    let lines: Vec<Line<'_>> = lines.collect();
    let middle = count - descending;
    for number in (middle - ascending..middle).chain((middle..count).rev()) {
        let (address, name) = (BASE + number * 4096, format!("mapping_{number}"));
        let code = Code::new(bytes).runs_at(address as u64).named(&name);
        valgrind.load(&code.lines(&lines));
        memory.run(number * 4096, 10, 0);
    }
    assert!(!valgrind.is_off());
}

/// Threads that announce code and run it, all at the same time.
fn parallel() {
    let valgrind = &publisher();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let memory = Memory::private(BASE + (thread << 32), 1 << 16);
                for number in 0..200 {
                    let name = format!("of_{thread}_{number}");
                    memory.put_named(valgrind, number * 112, &name, &COUNT);
                    memory.run(number * 112, 100, 0);
                }
            });
        }
    });
}

/// So many functions that are announced and run outside of the part that callgrind is to count, and ten in it.
fn chosen(outside: usize) {
    let valgrind = publisher();
    let memory = Memory::private(BASE, 1 << 16);
    let put = |numbers: std::ops::Range<usize>, name: &str| {
        for number in numbers {
            memory.put_named(&valgrind, number * 112, name, &COUNT);
            memory.run(number * 112, 10, 0);
        }
    };
    put(0..outside, "outside");
    chosen_part(&|| put(200..210, "inside"));
    put(0..outside, "outside");
}

/// Other code at the same address, and at overlapping ones, ten thousand times.
fn rejit() {
    let valgrind = publisher();
    let memory = Memory::private(BASE, 1 << 14);
    memory.put_named(&valgrind, 0x700, "stays", &COUNT);
    let mut old = Vec::new();
    for number in 0..10_000_usize {
        let offset = 16 * (number % 7);
        let function = [&COUNT, &READ, &CALL][number % 3];
        if number % 2 == 0 {
            for (offset, size) in old.drain(..) {
                valgrind.unload((memory.address + offset) as u64, size);
            }
        }
        memory.put_named(&valgrind, offset, &format!("{}_{number}", function.name), function);
        old.push((offset, function.bytes.len() as u64));
        match number % 3 {
            0 => memory.run(offset, 10, 0),
            1 => memory.run(offset, memory.address, 0),
            _ => memory.run(offset, memory.address + 0x700, 10),
        };
    }
}

/// Memory that is unmapped and mapped again, with other code at the same addresses.
fn remap() {
    let valgrind = publisher();
    let filler = [0x90; 64];
    for round in 0..50_usize {
        let memory = Memory::private(BASE, 1 << 14);
        let functions = [&COUNT, &CALL];
        for place in 0..4 {
            let function = functions[(round + place) % 2];
            let offset = place * 4096;
            memory.put_named(&valgrind, offset, &format!("first_{round}_{place}"), function);
            // The same address begins a block of another size in each round.
            memory.write(offset + 0x100, &filler[..round % 40]);
            memory.write(offset + 0x100 + round % 40, COUNT.bytes);
            let size = (round % 40 + COUNT.bytes.len()) as u64;
            let code = Code::at((BASE + offset + 0x100) as u64, size).named("grows");
            valgrind.load(&code);
            memory.run(offset + 0x100, 10, 0);
            if function.name == COUNT.name {
                memory.run(offset, 10, 0);
            }
            if round % 2 == 0 {
                valgrind.unload(code.address, size);
                valgrind.unload((BASE + offset) as u64, function.bytes.len() as u64);
            }
        }
        memory.unmap();
    }
}

/// Code that is copied elsewhere, next to its old place and far away.
fn moves() {
    let valgrind = publisher();
    let (near, far) = (Memory::private(BASE, 1 << 14), Memory::private(2 * BASE, 1 << 14));
    near.put_named(&valgrind, 0, "moves", &COUNT);
    near.put_named(&valgrind, 0x80, "stays", &COUNT);
    near.run(0, 1000, 0);
    let size = COUNT.bytes.len() as u64;
    near.write(0x1000, COUNT.bytes);
    valgrind.moved(BASE as u64, (BASE + 0x1000) as u64, size);
    near.run(0x1000, 1000, 0);
    far.write(0x40, COUNT.bytes);
    valgrind.moved((BASE + 0x1000) as u64, (2 * BASE + 0x40) as u64, size);
    far.run(0x40, 1000, 0);
    near.run(0x80, 1000, 0);
}

/// Code that runs, and memory that is written, while other code of the same pages is announced.
fn threads() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let valgrind = publisher();
    let memory = Memory::private(BASE, 1 << 14);
    memory.put(&valgrind, 0, &COUNT);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let memory = &memory;
            scope.spawn(move || {
                while !DONE.load(Relaxed) {
                    memory.run(0, 20, 0);
                    memory.write(0xf00 + thread, &[7]);
                    memory.run(0, 20, 0);
                }
            });
        }
        for number in 0..200 {
            memory.put_named(&valgrind, 0x40 + 16 * (number % 100), "new", &COUNT);
            memory.run(0x40 + 16 * (number % 100), 50, 0);
        }
        DONE.store(true, Relaxed);
    });
    assert!(!valgrind.is_off());
}

/// Parent and child make code at the same addresses.
fn fork() {
    let valgrind = publisher();
    let memory = Memory::private(BASE, 1 << 14);
    memory.put_named(&valgrind, 0, "before", &COUNT);
    memory.run(0, 1000, 0);
    in_a_fork(|| {
        valgrind.forked();
        memory.put_named(&valgrind, 0x100, "in_child", &COUNT);
        memory.run(0, 1000, 0);
        memory.run(0x100, 1000, 0);
    });
    memory.put_named(&valgrind, 0x100, "in_parent", &COUNT);
    memory.run(0, 1000, 0);
    memory.run(0x100, 1000, 0);
}

/// Two threads that read and write one word, the one in jitted code.
fn race() {
    let valgrind = publisher();
    let memory = Memory::private(BASE, 1 << 14);
    memory.put(&valgrind, 0x100, &CALL);
    memory.put(&valgrind, 0x200, &READ);
    let word = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| word.store(1, Relaxed));
        let place = (&raw const word).expose_provenance();
        memory.run(0x100, memory.address + 0x200, place);
    });
}
