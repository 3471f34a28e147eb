//! All events of a recording, and which of them a record belongs to.

use std::collections::HashMap;

use crate::attr::{Attr, sample_type};
use crate::endian::{Cursor, Endian};
use crate::event_header::kind;
use crate::layout::SampleLayout;
use crate::sample_id::SampleId;

/// The events of a recording. They are distinguished as in perf: by the id in each record.
#[derive(Clone, Debug)]
pub struct Attrs {
    endian: Endian,
    list: Vec<Attr>,
    by_id: HashMap<u64, usize>,
    /// The layout of each event's samples.
    layouts: Vec<SampleLayout>,
    uniform: bool,
    /// Index of the event that reports mappings and forks.
    tracking: usize,
}

impl Attrs {
    pub(crate) fn new(endian: Endian, list: Vec<Attr>) -> Self {
        let mut by_id = HashMap::new();
        for (index, attr) in list.iter().enumerate() {
            for &id in attr.ids() {
                by_id.entry(id).or_insert(index);
            }
        }
        let uniform = list.first().is_none_or(|first| list.iter().all(|a| a.same_layout(first)));
        let layouts = list.iter().map(SampleLayout::of).collect();
        let tracking = list.iter().position(Attr::is_tracking).unwrap_or(0);
        Self { endian, list, by_id, layouts, uniform, tracking }
    }

    /// Byte order of the recording.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Every event, in the recording's order.
    pub fn list(&self) -> &[Attr] {
        &self.list
    }

    /// The event that reports mappings and forks; the first one if none has that flag.
    pub fn tracking(&self) -> Option<&Attr> {
        self.list.get(self.tracking)
    }

    /// The event that a kernel id belongs to.
    pub fn by_id(&self, id: u64) -> Option<&Attr> {
        self.by_id.get(&id).and_then(|&index| self.list.get(index))
    }

    /// Encodes a trailer for a record that is added to the recording, in the layout of the tracking event. Empty if
    /// the recording's records have no trailers.
    ///
    /// The id is the first id of the tracking event, and the CPU is 0. Neither is known for a synthesized record, and
    /// perf uses them only to find the layout.
    pub fn trailer(&self, pid: u32, tid: u32, time: u64) -> Vec<u8> {
        let Some(attr) = self.tracking() else { return Vec::new() };
        let id = attr.ids().first().copied().unwrap_or_default();
        let sample_id = SampleId {
            pid: Some(pid),
            tid: Some(tid),
            time: Some(time),
            id: Some(id),
            stream_id: Some(id),
            cpu: Some(0),
        };
        sample_id.encode(attr, self.endian)
    }

    pub(crate) fn name_all<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) {
        for (attr, name) in self.list.iter_mut().zip(names) {
            attr.set_name(name);
        }
    }

    pub(crate) fn name_by_id(&mut self, id: u64, name: &[u8]) {
        if let Some(attr) = self.by_id.get(&id).and_then(|&index| self.list.get_mut(index)) {
            attr.set_name(name);
        }
    }

    /// The event that a record belongs to; the first one if the record has no id.
    pub(crate) fn of(&self, event_kind: u32, body: &[u8]) -> Option<&Attr> {
        self.list.get(self.index_of(event_kind, body))
    }

    /// An event with the same layout as the record's. If all layouts are equal, the id is not read.
    pub(crate) fn layout_of(&self, event_kind: u32, body: &[u8]) -> Option<(&Attr, SampleLayout)> {
        let index = if self.uniform { 0 } else { self.index_of(event_kind, body) };
        self.list.get(index).zip(self.layouts.get(index).copied())
    }

    fn index_of(&self, event_kind: u32, body: &[u8]) -> usize {
        let [first, _, ..] = self.list.as_slice() else { return 0 };
        match self.id_of(first, event_kind, body) {
            // perf's own synthesized records have id 0.
            None | Some(0) => 0,
            Some(id) => self.by_id.get(&id).copied().unwrap_or(0),
        }
    }

    /// The id in a record, at the position that all events of a recording have in common.
    fn id_of(&self, first: &Attr, event_kind: u32, body: &[u8]) -> Option<u64> {
        let word = |index: usize| {
            let start = index.checked_mul(8)?;
            Cursor::new(body.get(start..)?, self.endian).u64()
        };
        let count_before =
            |fields: &[u64]| fields.iter().filter(|&&field| first.has(field)).count();
        if event_kind == kind::SAMPLE {
            if first.has(sample_type::IDENTIFIER) {
                return word(0);
            }
            let before = [sample_type::IP, sample_type::TID, sample_type::TIME, sample_type::ADDR];
            return first.has(sample_type::ID).then(|| count_before(&before)).and_then(word);
        }
        if !first.sample_id_all() || event_kind >= kind::USER_TYPE_START {
            return None;
        }
        let behind = if first.has(sample_type::IDENTIFIER) {
            0
        } else if first.has(sample_type::ID) {
            count_before(&[sample_type::STREAM_ID, sample_type::CPU])
        } else {
            return None;
        };
        let words = body.len().checked_div(8)?;
        word(words.checked_sub(behind)?.checked_sub(1)?)
    }
}
