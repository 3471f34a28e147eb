//! The format of pprof: a gzipped message, in which samples are added up.
//!
//! A location is an address with all calls that were inlined there. Tiers, generations, threads and activities are labels of samples, for `-tagfocus` and
//! `-tagroot`: the function is the same in all of them. So is the key of the innermost function: functions have names alone, and their `system_name` is the
//! symbol.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use printable::Hexadecimal;
use profile::{EventId, FunctionId, Profile, SampledWork, StackId, ThreadId, Work};

use crate::keys::Keys;
use crate::location::Locations;
use crate::mapping::Mappings;
use crate::measure::{Unit, unit};
use crate::options::{Options, command, jitted_code};
use crate::protobuf::{Message, write_field};
use crate::rows::{Rows, from_one};
use crate::string_table::StringTable;

/// The fields of the outermost message.
mod field {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const TIME_NANOS: u32 = 9;
    pub const DURATION_NANOS: u32 = 10;
    pub const PERIOD_TYPE: u32 = 11;
    pub const PERIOD: u32 = 12;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Writes a profile for pprof.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut gzip = GzEncoder::new(out, Compression::default());
    Writer::new(profile, options).write(&mut gzip)?;
    gzip.finish().map(|_| ())
}

struct Writer<'p> {
    profile: &'p Profile,
    options: &'p Options,
    strings: StringTable<'p>,
    locations: Locations,
    is_used: Vec<bool>,
    keys: Keys,
}

/// Two values of each event: samples, and what they stand for.
struct Measured {
    event: EventId,
    unit: Unit,
}

impl<'p> Writer<'p> {
    fn new(profile: &'p Profile, options: &'p Options) -> Self {
        let locations = Locations::of(profile);
        let is_used = vec![false; locations.len()];
        let keys = Keys::of(profile);
        Self { profile, options, strings: StringTable::new(profile), locations, is_used, keys }
    }

    fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let events = self.options.selection.events(self.profile).into_iter();
        let measured: Vec<Measured> =
            events.map(|(event, _)| Measured { event, unit: unit(self.profile, event) }).collect();
        self.write_head(&measured, out)?;
        self.write_samples(&measured, out)?;
        self.write_places(out)?;
        for text in self.strings.texts() {
            write_field(out, field::STRING_TABLE, text.as_bytes())?;
        }
        Ok(())
    }

    fn write_head(&mut self, measured: &[Measured], out: &mut dyn Write) -> io::Result<()> {
        let mut head = Message::new();
        for (place, measured) in measured.iter().enumerate() {
            let name = self.profile.text(self.profile.event(measured.event).name);
            let name = String::from_utf8_lossy(name);
            let is_time = measured.unit != Unit::Events;
            let (samples, value) = match (place, is_time) {
                (0, true) => ("samples".to_owned(), "cpu".to_owned()),
                (0, false) => ("samples".to_owned(), name.clone().into_owned()),
                (_, true) => (format!("{name}-samples"), format!("{name}-cpu")),
                (_, false) => (format!("{name}-samples"), name.clone().into_owned()),
            };
            let unit = if is_time { "nanoseconds" } else { "count" };
            let count = self.strings.value_type(&samples, "count");
            let value_type = self.strings.value_type(&value, unit);
            head.message(field::SAMPLE_TYPE, &count).message(field::SAMPLE_TYPE, &value_type);
            if place == 0 {
                head.number(field::DEFAULT_SAMPLE_TYPE, self.strings.text(&value));
                if let Unit::Nanoseconds(period) = measured.unit {
                    head.message(field::PERIOD_TYPE, &value_type).number(field::PERIOD, period);
                }
            }
        }
        let mut times = self.options.selection.of(self.profile).map(|sample| sample.time);
        if let Some(first) = times.next() {
            let last = times.last().unwrap_or(first);
            let utc = self.profile.about.to_utc.and_then(|offset| first.checked_add_signed(offset));
            head.number(field::TIME_NANOS, utc.unwrap_or(0));
            head.number(field::DURATION_NANOS, last.saturating_sub(first));
        }
        let command = command(self.profile);
        if !command.is_empty() {
            head.number(field::COMMENT, self.strings.text(&command));
        }
        head.write(out)
    }

    fn write_samples(&mut self, measured: &[Measured], out: &mut dyn Write) -> io::Result<()> {
        let width = measured.len().saturating_mul(2);
        let place_of = |event| measured.iter().position(|measured| measured.event == event);
        let mut keys: Rows<(StackId, ThreadId)> = Rows::default();
        let mut values: Vec<u64> = Vec::new();
        let work = SampledWork::of(self.profile, self.options.selection.of(self.profile));
        for sample in self.options.selection.of(self.profile) {
            let place = keys.number((sample.stack, sample.thread)) as usize;
            values.resize(keys.rows().len().saturating_mul(width), 0);
            let Some(event) = place_of(sample.event) else { continue };
            let at = place.saturating_mul(width).saturating_add(event.saturating_mul(2));
            let value = measured.get(event).map_or(0, |it| it.unit.value(sample.weight));
            for (at, value) in [(at, 1), (at.saturating_add(1), value)] {
                if let Some(sum) = values.get_mut(at) {
                    *sum = sum.saturating_add(value);
                }
            }
        }
        for ((stack, thread), values) in
            keys.into_rows().into_iter().zip(values.chunks(width.max(1)))
        {
            let mut sample = Message::new();
            let mut ids = Vec::new();
            for location in self.locations.of_stack(stack) {
                if let Some(is_used) = self.is_used.get_mut(location as usize) {
                    *is_used = true;
                }
                ids.push(from_one(location));
            }
            sample.numbers(1, ids);
            // The format has signed values.
            sample.numbers(2, values.iter().map(|value| (*value).min(i64::MAX.cast_unsigned())));
            self.add_labels((stack, thread), work.during(stack, thread), &mut sample);
            write_field(out, field::SAMPLE, sample.as_ref())?;
        }
        Ok(())
    }

    fn add_labels(
        &mut self,
        (stack, thread): (StackId, ThreadId),
        work: Option<Work>,
        sample: &mut Message,
    ) {
        let thread = self.profile.thread(thread);
        let process = self.profile.process(thread.process);
        let frame = self.profile.frame(self.profile.stack(stack).frame);
        let code = jitted_code(self.profile, frame);
        let texts = [
            ("thread", thread.name),
            ("process", process.name),
            ("tier", code.map_or(profile::StringId::EMPTY, |code| code.tier)),
        ];
        for (key, text) in texts {
            if !text.is_empty() {
                let mut label = Message::new();
                label.number(1, self.strings.text(key)).number(2, self.strings.id(text));
                sample.message(3, &label);
            }
        }
        let key = self.keys.text(frame.function);
        let named = [("function_key", Some(key.as_str())), ("activity", work.map(Work::name))];
        for (name, value) in named.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            let mut label = Message::new();
            label.number(1, self.strings.text(name)).number(2, self.strings.text(value));
            sample.message(3, &label);
        }
        let generation = code.map_or(0, |code| code.generation);
        for (key, value) in [("tid", thread.tid), ("pid", process.pid), ("generation", generation)]
        {
            if value > 0 {
                let mut label = Message::new();
                label.number(1, self.strings.text(key)).number(3, u64::from(value));
                sample.message(3, &label);
            }
        }
    }

    /// Mappings, the locations that samples refer to, and their functions.
    fn write_places(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let profile = self.profile;
        let mappings = Mappings::of(profile, &self.options.selection);
        for (id, mapping) in (1..).zip(mappings.iter()) {
            let mut message = Message::new();
            message.number(1, id);
            message.number(2, mapping.addresses.start).number(3, mapping.addresses.end);
            message.number(5, self.strings.text(&String::from_utf8_lossy(&mapping.name)));
            message.number(6, self.strings.text(&Hexadecimal(&mapping.build_id).to_string()));
            // Functions, files, lines and inlined calls are known: pprof need not look for them.
            (7..=10).for_each(|has| _ = message.number(has, 1));
            write_field(out, field::MAPPING, message.as_ref())?;
        }
        let mut symbols = vec![None; profile.functions().len()];
        let is_used = std::mem::take(&mut self.is_used);
        for (location, _) in (0_u32..).zip(is_used).filter(|(_, is_used)| *is_used) {
            let mut message = Message::new();
            message.number(1, from_one(location));
            for (place, frame) in self.locations.frames(profile, location).enumerate() {
                if place == 0 {
                    let mapping = mappings.of_frame(profile, frame).map_or(0, from_one);
                    message.number(2, mapping).number(3, frame.address);
                }
                let mut line = Message::new();
                line.number(1, from_one(frame.function.0)).number(2, u64::from(frame.line));
                line.number(3, u64::from(frame.column));
                message.message(4, &line);
                if let Some(symbol) = symbols.get_mut(frame.function.index()) {
                    // An inlined function has no symbol, unless it is elsewhere on its own.
                    let code = frame.code.filter(|_| !frame.is_inlined());
                    let of_code = code.map(|code| profile.code(code).symbol);
                    let before = symbol.unwrap_or(profile::StringId::EMPTY);
                    *symbol = of_code.filter(|it| !it.is_empty()).or(Some(before));
                }
            }
            write_field(out, field::LOCATION, message.as_ref())?;
        }
        for (id, symbol) in (0..).map(FunctionId).zip(symbols) {
            let Some(symbol) = symbol else { continue };
            let function = profile.function(id);
            let name = self.strings.id(function.name);
            let symbol = if symbol.is_empty() { name } else { self.strings.id(symbol) };
            let mut message = Message::new();
            message.number(1, from_one(id.0)).number(2, name).number(3, symbol);
            message
                .number(4, self.strings.id(profile.file_of(id)))
                .number(5, u64::from(function.line));
            write_field(out, field::FUNCTION, message.as_ref())?;
        }
        Ok(())
    }
}
