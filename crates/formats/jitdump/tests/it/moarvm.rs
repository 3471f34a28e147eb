//! The dump of a MoarVM whose JIT compiler writes one (`MVM_JIT_PERF_DUMP`, since 2026).
//!
//! The records are those of our own program. The thread that compiles is started again by `nqp::fork`, also if that fails, and
//! then writes another header. MoarVM's perf map of the same process says where the code is.

use jitdump::check::{Severity, check};
use jitdump::{Body, Dump, End, ErrorKind};

const DUMP: &[u8] = include_bytes!("../data/moarvm.dump");

/// Lines of `/tmp/perf-27482.map`.
const MAP: &str = "\
7f5e35ff2000 28c fib(main.raku:4)
7f5e35ff1000 5b7 collatz(/tmp/app/Work.rakumod (Work):2)
7f5e35feb000 47f later(main.raku:5)
";

#[test]
fn code_is_where_the_perf_map_has_it() {
    let mut records = Dump::parse(DUMP).unwrap().records();
    let mut map = String::new();
    let mut damage = Vec::new();
    for record in records.by_ref() {
        match record {
            Ok(record) => {
                let Body::Load(load) = record.body else { panic!("{record:?}") };
                assert_eq!((load.pid, load.code.len() as u64), (27482, load.code_size()));
                // `push rbp; mov rbp, rsp`
                assert_eq!(load.code[..4], [0x55, 0x48, 0x89, 0xe5]);
                let name = str::from_utf8(load.name).unwrap();
                map += &format!("{:x} {:x} {name}\n", load.code_addr, load.code.len());
            }
            Err(error) => damage.push(error.kind),
        }
    }
    assert_eq!(map, MAP);
    assert_eq!(damage, [ErrorKind::Gap { len: 40, zeros: false }]);
    assert_eq!(records.end(), Some(End::Complete { offset: DUMP.len() as u64 }));
}

#[test]
fn the_header_in_the_middle_is_the_only_error() {
    let report = check(DUMP);
    let errors = report.findings.iter().filter(|it| it.severity == Severity::Error);
    let errors: Vec<_> = errors.map(|it| (it.rule, it.count)).collect();
    assert_eq!(errors, [("garbage", 1)]);
}
