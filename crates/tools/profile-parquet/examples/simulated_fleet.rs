//! Writes the tables of a simulated fleet for one day: by default 1,000 hosts with 144 windows of 10 minutes and 100 rows in each, 14.4 million rows in all.
//!
//! ```sh
//! cargo run --release -p jitscribe-profile-parquet --example simulated_fleet -- DIR [HOSTS]
//! ```
//!
//! 40 services have 1,250 functions each, which are sampled by Zipf's law. A host runs one service; at noon, half of the hosts get a new version, in which the
//! first function of each service takes twice as long. The numbers are the same in each run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use profile::{FunctionKey, Origin, Version, stack_id};
use profile_parquet::{Column, Table};

const HOSTS: u64 = 1000;
const SERVICES: u64 = 40;
const FUNCTIONS: u64 = 1250;
const WINDOWS: u64 = 144;
const ROWS: u64 = 100;
/// 2026-11-25, in seconds since 1970.
const DAY: i64 = 1_795_564_800;
const TIERS: [&str; 4] = ["interpreted", "sparkplug", "maglev", "turbofan"];

/// xorshift64*: numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The names of one service's functions, and their keys.
struct Service {
    name: String,
    functions: Vec<(i64, FunctionKey)>,
    places: BTreeMap<i64, usize>,
    /// Three stacks of each function.
    stacks: Vec<[(i64, Vec<i64>); 3]>,
}

impl Service {
    fn new(number: u64) -> Self {
        let name = format!("service-{number:02}");
        let functions: Vec<(i64, FunctionKey)> = (0..FUNCTIONS)
            .map(|function| {
                let key = FunctionKey {
                    origin: if function % 10 == 9 { Origin::Native } else { Origin::Runtime },
                    name: format!("function{function}").into_bytes(),
                    file: format!("/srv/{name}/module{}.js", function / 20).into_bytes(),
                    place: (u32::try_from(function % 20 * 12 + 1).unwrap_or(0), 10),
                    version: Version { runtime: b"node".to_vec(), ..Version::default() },
                };
                (key.id().cast_signed(), key)
            })
            .collect();
        let mut numbers = Numbers(number + 1);
        let stacks = (0..functions.len()).map(|leaf| {
            std::array::from_fn(|_| {
                let depth = 4 + numbers.below(12);
                let callers = (0..depth).map(|_| functions[numbers.below(FUNCTIONS) as usize].0);
                let keys: Vec<i64> = callers.chain([functions[leaf].0]).collect();
                let ids: Vec<u64> = keys.iter().map(|key| key.cast_unsigned()).collect();
                (stack_id(&ids).cast_signed(), keys)
            })
        });
        let stacks = stacks.collect();
        let places = functions.iter().enumerate().map(|(place, (key, _))| (*key, place)).collect();
        Self { name, functions, places, stacks }
    }
}

/// A number of a function, those with small numbers more often: by Zipf's law, from the table of sums.
fn zipf(sums: &[f64], numbers: &mut Numbers) -> usize {
    let all = sums.last().copied().unwrap_or(1.0);
    let point = (numbers.next() >> 11) as f64 / (1_u64 << 53) as f64 * all;
    sums.partition_point(|sum| *sum <= point)
}

struct Row {
    window: i64,
    code: i64,
    function: i64,
    stack: i64,
    tier: usize,
    generation: i32,
    count: i64,
    version: &'static str,
}

/// The four tables of a host.
fn tables(host: u64, service: &Service, sums: &[f64]) -> [Table; 4] {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ (host + 1));
    let host_name = format!("host-{host:04}");
    let (mut rows, mut functions, mut stacks, mut codes) =
        (Vec::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for window in 0..WINDOWS {
        let is_new = host / SERVICES % 2 == 1 && window >= WINDOWS / 2;
        let version = if is_new { "1.1" } else { "1.0" };
        let start = DAY + i64::try_from(window).unwrap_or(0) * 600;
        for _ in 0..ROWS {
            let function = zipf(sums, &mut numbers);
            let (key, _) = service.functions[function];
            let is_native = function % 10 == 9;
            let (tier, generation) = match is_native {
                true => (usize::MAX, 0),
                false => {
                    let generation = 1 + numbers.below(4) as i32;
                    ((generation as usize - 1).min(3), generation)
                }
            };
            let code = stack_id(&[key.cast_unsigned(), generation as u64]).cast_signed();
            let (stack, list) = &service.stacks[function][numbers.below(3) as usize];
            let mut count = 1 + numbers.below(40) as i64;
            if is_new && function == 0 {
                count *= 2;
            }
            let row = Row {
                window: start,
                code,
                function: key,
                stack: *stack,
                tier,
                generation,
                count,
                version,
            };
            rows.push(row);
            if stacks.insert(*stack, list.clone()).is_none() {
                functions.extend(list.iter().map(|key| (*key, service.places[key])));
            }
            *codes.entry((code, key, tier)).or_insert(0_i64) += i64::from(numbers.below(50) == 0);
        }
    }
    rows.sort_by_key(|row| (row.window, row.code));
    [
        samples(&host_name, &service.name, &rows),
        Table {
            name: "stacks",
            columns: vec![
                ("stack_key", Column::Number(stacks.keys().copied().collect())),
                ("function_keys", Column::List(stacks.into_values().collect())),
            ],
        },
        functions_table(service, &functions),
        codes_table(&host_name, &service.name, &codes),
    ]
}

fn same(text: &str, rows: usize) -> Column {
    Column::Text(vec![text.into(); rows])
}

fn tier(tier: usize) -> Arc<str> {
    TIERS.get(tier).copied().unwrap_or_default().into()
}

fn samples(host: &str, service: &str, rows: &[Row]) -> Table {
    let number = |of: fn(&Row) -> i64| Column::Number(rows.iter().map(of).collect());
    Table {
        name: "samples",
        columns: vec![
            ("host", same(host, rows.len())),
            ("service", same(service, rows.len())),
            ("version", Column::Text(rows.iter().map(|row| row.version.into()).collect())),
            ("window_start", Column::Time(rows.iter().map(|row| row.window * 1_000_000).collect())),
            ("event", same("cycles", rows.len())),
            ("function_key", number(|row| row.function)),
            ("code_key", number(|row| row.code)),
            ("tier", Column::Text(rows.iter().map(|row| tier(row.tier)).collect())),
            ("generation", Column::Small(rows.iter().map(|row| row.generation).collect())),
            ("stack_key", number(|row| row.stack)),
            ("sample_count", number(|row| row.count)),
            ("weight", number(|row| row.count)),
        ],
    }
}

fn functions_table(service: &Service, functions: &BTreeMap<i64, usize>) -> Table {
    let keys = || functions.values().map(|&function| &service.functions[function].1);
    let text =
        |of: fn(&FunctionKey) -> String| Column::Text(keys().map(|key| of(key).into()).collect());
    Table {
        name: "functions",
        columns: vec![
            ("function_key", Column::Number(functions.keys().copied().collect())),
            (
                "lineage_key",
                Column::Number(keys().map(|key| key.without_place().id().cast_signed()).collect()),
            ),
            (
                "origin",
                text(|key| match key.origin {
                    Origin::Native => "native".to_owned(),
                    _ => "runtime".to_owned(),
                }),
            ),
            ("name", text(|key| String::from_utf8_lossy(&key.name).into_owned())),
            ("file", text(|key| String::from_utf8_lossy(&key.file).into_owned())),
            ("start_line", Column::Small(keys().map(|key| key.place.0.cast_signed()).collect())),
            ("start_column", Column::Small(keys().map(|key| key.place.1.cast_signed()).collect())),
            ("runtime", text(|key| String::from_utf8_lossy(&key.version.runtime).into_owned())),
            ("runtime_build_id", same("", functions.len())),
            ("source_hash", same("", functions.len())),
        ],
    }
}

fn codes_table(host: &str, service: &str, codes: &BTreeMap<(i64, i64, usize), i64>) -> Table {
    let keys = || codes.keys();
    Table {
        name: "codes",
        columns: vec![
            ("host", same(host, codes.len())),
            ("service", same(service, codes.len())),
            ("version", same("1.0", codes.len())),
            ("code_key", Column::Number(keys().map(|key| key.0).collect())),
            ("function_key", Column::Number(keys().map(|key| key.1).collect())),
            ("tier", Column::Text(keys().map(|key| tier(key.2)).collect())),
            ("size", Column::Number(keys().map(|key| key.0.rem_euclid(4096)).collect())),
            ("compilations", Column::Number(codes.values().copied().collect())),
            ("module", same("", codes.len())),
            ("build_id", same("", codes.len())),
            ("module_address", Column::Number(keys().map(|_| 0).collect())),
        ],
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("simulated_fleet DIR [HOSTS]")?;
    let hosts = arguments.next().map_or(Ok(HOSTS), |hosts| hosts.parse())?;
    let sums: Vec<f64> = (1..=FUNCTIONS)
        .scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        })
        .collect();
    let services: Vec<Service> = (0..SERVICES).map(Service::new).collect();
    for host in 0..hosts {
        let service = &services[(host % SERVICES) as usize];
        for table in tables(host, service, &sums) {
            let folder =
                format!("{folder}/{}/date=2026-11-25/service={}", table.name, service.name);
            fs::create_dir_all(&folder)?;
            let name = format!("host-{host:04}-20261125T000000Z-00000000.parquet");
            fs::write(Path::new(&folder).join(name), table.encode()?)?;
        }
    }
    Ok(())
}
