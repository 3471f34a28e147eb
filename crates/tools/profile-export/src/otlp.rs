//! OpenTelemetry's profiles (OTLP, `v1development`): an `ExportProfilesServiceRequest`, which is at the same time a `ProfilesData`.
//!
//! A resource is a process. Each sample has its times, in UTC; if the recording does not tell UTC, samples have counts instead. All tables are in the dictionary, and their
//! first rows mean "none".
//!
//! The attribute `code.function.key` of a location has a key for each of its lines, in their order: functions themselves have no attributes.

use std::io::{self, Write};

use printable::Hexadecimal;
use profile::{EventId, Frame, FunctionKind, ProcessId, Profile, StackId, ThreadId};
use rustc_hash::FxHashMap;

use crate::keys::Keys;
use crate::location::Locations;
use crate::mapping::Mappings;
use crate::measure::{Unit, unit};
use crate::options::{Options, is_jitted, jitted_code};
use crate::protobuf::{Message, write_field};
use crate::rows::{Rows, from_one};
use crate::string_table::StringTable;

/// Writes a request.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer {
        profile,
        strings: StringTable::new(profile),
        locations: Locations::of(profile),
        used_locations: Rows::default(),
        stacks: Rows::default(),
        attributes: Rows::default(),
        keys: Keys::of(profile),
    };
    // What was sampled with which stack in which thread, by process and event.
    let mut samples: FxHashMap<_, Vec<u64>> = FxHashMap::default();
    for sample in options.selection.of(profile) {
        let process = profile.thread(sample.thread).process;
        let key = (process, sample.event, sample.thread, sample.stack);
        samples.entry(key).or_default().push(sample.time);
    }
    let mut keys: Vec<_> = samples.keys().copied().collect();
    keys.sort_unstable();
    let events = options.selection.events(profile);
    for of_process in keys.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(process, ..)) = of_process.first() else { continue };
        let resource_message = writer.resource(process, options);
        let mut scope = Message::new();
        scope.message(1, Message::new().text(1, "jitscribe").text(2, env!("CARGO_PKG_VERSION")));
        for &(event, _) in &events {
            let keys: Vec<_> = of_process.iter().filter(|key| key.1 == event).collect();
            if keys.is_empty() {
                continue;
            }
            let mut message = writer.profile_head(event);
            let all = keys.iter().filter_map(|key| samples.get(key)).flatten();
            let first = all.clone().min().copied().unwrap_or(0);
            let last = all.max().copied().unwrap_or(0);
            message.fixed64(3, writer.utc(first).unwrap_or(0));
            message.number(4, last.saturating_sub(first).saturating_add(1));
            for key in &keys {
                let times = samples.get(key).map(Vec::as_slice).unwrap_or_default();
                message.message(2, &writer.sample(key.2, key.3, times));
            }
            let times = keys.iter().filter_map(|key| samples.get(key)).flatten();
            message.bytes(7, &profile_id(profile, &resource_message, &message, times));
            scope.message(2, &message);
        }
        let mut resource = Message::new();
        resource.message(1, &resource_message).message(2, &scope);
        write_field(out, 1, resource.as_ref())?;
    }
    let dictionary = writer.dictionary(options);
    write_field(out, 2, dictionary.as_ref())
}

/// Identifies a profile by its content: exported again, from any place, it has the same ID.
fn profile_id<'a>(
    profile: &Profile,
    resource: &Message,
    message: &Message,
    times: impl Iterator<Item = &'a u64>,
) -> [u8; 16] {
    let about = &profile.about;
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    [&about.host, &about.machine].into_iter().for_each(|text| add(text));
    about.command.iter().for_each(|word| add(word));
    add(resource.as_ref());
    add(message.as_ref());
    // Without UTC, they are not in the message.
    times.for_each(|time| add(&time.to_le_bytes()));
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    id
}

/// The key and the value of an attribute, as numbers of strings; or a number.
type Attribute = (u64, Value);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Text(u64),
    Number(u64),
    Texts(Vec<u64>),
}

struct Writer<'p> {
    profile: &'p Profile,
    strings: StringTable<'p>,
    locations: Locations,
    used_locations: Rows<u32>,
    stacks: Rows<StackId>,
    attributes: Rows<Attribute>,
    keys: Keys,
}

impl Writer<'_> {
    fn utc(&self, time: u64) -> Option<u64> {
        time.checked_add_signed(self.profile.about.to_utc?)
    }

    fn text_attribute(&mut self, key: &str, value: u64) -> u64 {
        let key = self.strings.text(key);
        from_one(self.attributes.number((key, Value::Text(value))))
    }

    fn number_attribute(&mut self, key: &str, value: u64) -> u64 {
        let key = self.strings.text(key);
        from_one(self.attributes.number((key, Value::Number(value))))
    }

    fn resource(&self, process: ProcessId, options: &Options) -> Message {
        let row = self.profile.process(process);
        let name = String::from_utf8_lossy(self.profile.text(row.name)).into_owned();
        let mut resource = Message::new();
        let texts = [
            ("process.executable.name", name.as_str()),
            ("service.name", name.as_str()),
            ("host.name", &String::from_utf8_lossy(&self.profile.about.host)),
            (
                "host.arch",
                match &self.profile.about.machine[..] {
                    b"x86_64" => "amd64",
                    b"aarch64" => "arm64",
                    _ => "",
                },
            ),
        ];
        let more = options.resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let is_replaced = |key: &str| options.resource.iter().any(|(replaced, _)| replaced == key);
        let texts = texts.into_iter().filter(|(key, _)| !is_replaced(key)).chain(more);
        for (key, value) in texts.filter(|(_, value)| !value.is_empty()) {
            let mut any = Message::new();
            any.text(1, value);
            resource.message(1, Message::new().text(1, key).message(2, &any));
        }
        let mut pid = Message::new();
        pid.present_number(3, u64::from(row.pid));
        resource.message(1, Message::new().text(1, "process.pid").message(2, &pid));
        resource
    }

    fn profile_head(&mut self, event: EventId) -> Message {
        let name = self.profile.text(self.profile.event(event).name);
        let name = String::from_utf8_lossy(name).into_owned();
        let mut message = Message::new();
        let kind = self.strings.value_type("samples", "count");
        message.message(1, &kind);
        let (period_type, period) = match unit(self.profile, event) {
            Unit::Nanoseconds(each) => (self.strings.value_type("cpu", "nanoseconds"), each),
            Unit::Clock => (self.strings.value_type("cpu", "nanoseconds"), 0),
            Unit::Events => (self.strings.value_type(&name, "count"), 0),
        };
        message.message(5, &period_type).number(6, period);
        let value = self.strings.text(&name);
        let attribute = self.text_attribute("jitscribe.event", value);
        message.numbers(11, [attribute]);
        message
    }

    fn sample(&mut self, thread: ThreadId, stack: StackId, times: &[u64]) -> Message {
        let row = self.profile.thread(thread);
        let mut attributes = vec![self.number_attribute("thread.id", u64::from(row.tid))];
        let name = self.strings.id(row.name);
        if name > 0 {
            attributes.push(self.text_attribute("thread.name", name));
        }
        let mut message = Message::new();
        message.number(1, from_one(self.stacks.number(stack))).numbers(2, attributes);
        let utc: Option<Vec<u64>> = times.iter().map(|&time| self.utc(time)).collect();
        match utc {
            Some(times) => message.fixed64s(5, times),
            None => message.numbers(4, [times.len() as u64]),
        };
        message
    }

    fn dictionary(&mut self, options: &Options) -> Message {
        let profile = self.profile;
        let none = Message::new();
        let mut dictionary = Message::new();
        dictionary.message(7, &none);
        for stack in std::mem::take(&mut self.stacks).into_rows() {
            let locations = self.locations.of_stack(stack);
            let numbers: Vec<u64> =
                locations.map(|it| from_one(self.used_locations.number(it))).collect();
            dictionary.message(7, Message::new().numbers(1, numbers));
        }
        let mappings = Mappings::of(profile, &options.selection);
        dictionary.message(1, &none);
        for mapping in mappings.iter() {
            let mut message = Message::new();
            message.number(1, mapping.addresses.start).number(2, mapping.addresses.end);
            message.number(4, self.strings.text(&String::from_utf8_lossy(&mapping.name)));
            if !mapping.build_id.is_empty() {
                let value = self.strings.text(&Hexadecimal(&mapping.build_id).to_string());
                let id = self.text_attribute("process.executable.build_id.gnu", value);
                message.numbers(5, [id]);
            }
            dictionary.message(1, &message);
        }
        dictionary.message(2, &none);
        let mut functions = Rows::default();
        for location in std::mem::take(&mut self.used_locations).into_rows() {
            let mut message = Message::new();
            let mut outermost: Option<&Frame> = None;
            let mut lines = Vec::new();
            for frame in self.locations.frames(profile, location) {
                if outermost.is_none() {
                    let mapping = mappings.of_frame(profile, frame);
                    message.number(1, mapping.map_or(0, from_one));
                    message.number(2, frame.address);
                }
                let mut line = Message::new();
                line.number(1, from_one(functions.number(frame.function)));
                line.number(2, u64::from(frame.line)).number(3, u64::from(frame.column));
                message.message(3, &line);
                lines.push(frame.function);
                outermost = Some(frame);
            }
            if let Some(frame) = outermost {
                let mut attributes = self.location_attributes(frame);
                let key = self.strings.text("code.function.key");
                let keys =
                    lines.into_iter().map(|id| self.strings.text(&self.keys.text(id))).collect();
                attributes.push(from_one(self.attributes.number((key, Value::Texts(keys)))));
                message.numbers(4, attributes);
            }
            dictionary.message(2, &message);
        }
        dictionary.message(3, &none);
        for id in functions.into_rows() {
            let function = profile.function(id);
            let mut message = Message::new();
            message.number(1, self.strings.id(function.name));
            message
                .number(3, self.strings.id(profile.file_of(id)))
                .number(4, u64::from(function.line));
            dictionary.message(3, &message);
        }
        dictionary.message(4, &none);
        dictionary.message(6, &none);
        for (key, value) in self.attributes.rows() {
            let mut any = Message::new();
            match value {
                Value::Text(text) => {
                    let text = self.strings.get(*text);
                    any.bytes(1, text.as_bytes())
                }
                // A value of 0 is a value.
                Value::Number(number) => any.present_number(3, *number),
                Value::Texts(texts) => {
                    let mut array = Message::new();
                    for text in texts {
                        let text = self.strings.get(*text);
                        array.message(1, Message::new().bytes(1, text.as_bytes()));
                    }
                    any.message(5, &array)
                }
            };
            dictionary.message(6, Message::new().number(1, *key).message(2, &any));
        }
        for text in self.strings.texts() {
            dictionary.bytes(5, text.as_bytes());
        }
        dictionary
    }

    /// What the frame is, and which compilation.
    fn location_attributes(&mut self, frame: &Frame) -> Vec<u64> {
        let profile = self.profile;
        let kind = match profile.function(frame.function).kind {
            _ if is_jitted(profile, frame) => "jit",
            FunctionKind::Kernel => "kernel",
            FunctionKind::Native => "native",
            FunctionKind::Interpreted => "interpreted",
            _ => "unknown",
        };
        let kind = self.strings.text(kind);
        let mut attributes = vec![self.text_attribute("profile.frame.type", kind)];
        if let Some(code) = jitted_code(profile, frame) {
            if !code.tier.is_empty() {
                let tier = self.strings.id(code.tier);
                attributes.push(self.text_attribute("code.jit.tier", tier));
            }
            let generation = u64::from(code.generation);
            attributes.push(self.number_attribute("code.jit.generation", generation));
        }
        attributes
    }
}
