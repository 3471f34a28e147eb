//! OpenTelemetry's process context, read by the official protobuf messages from programs that have an SDK and from one without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::installed::running::Running;
use crate::installed::tree::{Link, compile, run};

/// Reads the context of a process as the OTEP says, and prints it as lines. The messages `Resource` and `KeyValue` are the official
/// ones; `ProcessContext`, which the package does not have yet, is made of them.
const READER: &str = r#"
import struct, sys, time
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

pid = int(sys.argv[1])
file = descriptor_pb2.FileDescriptorProto(name='context.proto', package='context', syntax='proto3')
file.dependency.extend([common_pb2.DESCRIPTOR.name, resource_pb2.DESCRIPTOR.name])
message = file.message_type.add(name='ProcessContext')
kind = descriptor_pb2.FieldDescriptorProto
message.field.add(name='resource', number=1, type=kind.TYPE_MESSAGE, label=kind.LABEL_OPTIONAL,
                  type_name='.opentelemetry.proto.resource.v1.Resource')
message.field.add(name='attributes', number=2, type=kind.TYPE_MESSAGE, label=kind.LABEL_REPEATED,
                  type_name='.opentelemetry.proto.common.v1.KeyValue')
pool = descriptor_pool.Default()
pool.Add(file)
ProcessContext = message_factory.GetMessageClass(pool.FindMessageTypeByName('context.ProcessContext'))

names = ('[anon_shmem:OTEL_CTX]', '[anon:OTEL_CTX]', '/memfd:OTEL_CTX')
mappings = [line.split() for line in open(f'/proc/{pid}/maps') if any(name in line for name in names)]
[[addresses, permissions, *_]] = mappings
assert permissions == 'rw-p', permissions
memory = open(f'/proc/{pid}/mem', 'rb', buffering=0)

def read(address, size):
    memory.seek(address)
    data = memory.read(size)
    assert len(data) == size
    return data

header = read(int(addresses.split('-')[0], 16), 32)
signature, version, size, published_at, payload = struct.unpack('=8sIIQQ', header)
assert (signature, version) == (b'OTEL_CTX', 2), header
now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
assert 0 < published_at <= now, (published_at, now)
context = ProcessContext.FromString(read(payload, size))
assert read(int(addresses.split('-')[0], 16), 32) == header

def unknown(message):
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            many = [value] if hasattr(value, 'ListFields') else value
            count += sum(unknown(each) for each in many)
    return count
assert unknown(context) == 0

def value(any):
    which = any.WhichOneof('value')
    found = getattr(any, which)
    return ','.join(value(each) for each in found.values) if which == 'array_value' else f'{which}:{found}'

for of, attributes in ('resource', context.resource.attributes), ('context', context.attributes):
    keys = [attribute.key for attribute in attributes]
    assert len(set(keys)) == len(keys), keys
    for attribute in attributes:
        if not attribute.key.startswith('code.log.'):
            print(of, attribute.key, value(attribute.value))

found = {attribute.key: attribute.value.array_value.values for attribute in context.attributes}
logs = [found.get(f'code.log.{key}', []) for key in ('address', 'size', 'version')]
for log in sorted(zip(*logs, strict=True), key=lambda log: log[0].int_value):
    print('log', *map(value, log))
"#;

/// The stubs of OpenTelemetry's protocol, which scripts/setup.sh installs.
fn python() -> PathBuf {
    let cache = std::env::var_os("JITSCRIBE_CACHE").map(PathBuf::from).unwrap_or_else(|| {
        let home = || Path::new(&std::env::var_os("HOME").expect("HOME")).join(".cache");
        let base = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
        base.join("jitscribe")
    });
    let python = cache.join("otlp-1.45.2/bin/python3");
    assert!(python.exists(), "{} is not there: run scripts/setup.sh test", python.display());
    python
}

struct Program(Running);

impl Program {
    fn start(word: &str, link: Link, environment: &[(&str, &str)]) -> Self {
        let program = compile("tests/c/context.c", link, &[]);
        let mut running = Running::spawn(program, &[word], environment);
        assert_eq!(running.line(), "ready");
        Self(running)
    }

    fn next(&mut self) {
        assert_eq!(self.0.ask(""), "ready");
    }

    fn end(mut self) {
        assert_eq!(self.0.ask(""), "");
        self.0.end();
    }

    /// The lines of [`READER`].
    fn context(&self) -> Vec<String> {
        let mut reader = Command::new(python());
        reader.args(["-c", READER, &self.0.pid().to_string()]);
        run(&mut reader).lines().map(str::to_owned).collect()
    }

    /// What the context should say about the logs, by the list of mappings. The parts of a log are mappings of one inode.
    fn logs(&self, count: usize) -> Vec<String> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.0.pid())).expect("maps");
        let mut logs: Vec<(u64, u64, &str)> = Vec::new();
        for line in maps.lines().filter(|line| line.contains("/memfd:jitscribe")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words[0].split_once('-').expect("a range");
            let number = |text| u64::from_str_radix(text, 16).expect("an address");
            match logs.last_mut().filter(|(_, _, inode)| *inode == words[4]) {
                Some((_, size, _)) => *size += number(end) - number(start),
                None => logs.push((number(start), number(end) - number(start), words[4])),
            }
        }
        assert_eq!(logs.len(), count);
        logs.sort_unstable();
        let text = |(address, size, _): &(u64, u64, &str)| {
            format!("log int_value:{address} int_value:{size} int_value:1")
        };
        logs.iter().map(text).collect()
    }
}

#[test]
fn a_context_of_the_library() {
    for link in [Link::Shared, Link::Static] {
        let environment = [("JITSCRIBE", "process-context"), ("OTEL_SERVICE_NAME", "größe")];
        let mut program = Program::start("ours", link, &environment);
        let service = ["resource service.name string_value:größe".to_owned()];
        assert_eq!(program.context(), [&service[..], &program.logs(1)].concat());
        program.next();
        assert_eq!(program.context(), [&service[..], &program.logs(2)].concat());
        program.end();
    }
}

const SDK: [&str; 2] =
    ["resource service.name string_value:sdk", "context sdk.own string_value:mine"];

#[test]
fn an_sdk_that_publishes_first_adds_the_attributes() {
    let mut program = Program::start("first", Link::Shared, &[]);
    assert_eq!(program.context(), SDK);
    program.next();
    assert_eq!(program.context(), [&SDK.map(str::to_owned)[..], &program.logs(1)].concat());
    program.end();
}

#[test]
fn the_library_makes_way_for_an_sdk() {
    let mut program = Program::start("after", Link::Shared, &[]);
    assert_eq!(program.context(), program.logs(1));
    program.next();
    assert_eq!(program.context(), [&SDK.map(str::to_owned)[..], &program.logs(1)].concat());
    program.end();
}
