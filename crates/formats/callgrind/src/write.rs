//! Writing functions in the form of a profile.

use std::rc::Rc;

use printable::Part;

use crate::line::NameRef;
use crate::position::{Columns, Positions, push_number};

/// Writes `key=name`. Control characters become blanks. A name that readers would take for a number, or whose
/// beginning they would cut off, is prefixed with `_`.
pub(crate) fn push_name(out: &mut Vec<u8>, key: &str, name: &[u8]) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    let is_cut = match printable::parts(name).next() {
        Some(Part::Plain(text)) => text.starts_with(' '),
        Some(Part::Byte(byte)) => *byte < 0xa0,
        Some(Part::Character(_)) => true,
        None => false,
    };
    if is_cut || NameRef::parse(name).id.is_some() {
        out.push(b'_');
    }
    if name.is_empty() {
        out.extend_from_slice(b"???");
    }
    push_text(out, name);
    out.push(b'\n');
}

/// Writes a name, with blanks for characters that are not [printable](printable::is_printable), such as a line end. A
/// byte that is not UTF-8 stays, unless it would be a control character by itself.
pub(crate) fn push_text(out: &mut Vec<u8>, name: &[u8]) {
    printable::replaced(name, " ").for_each(|piece| out.extend_from_slice(piece));
}

/// The lines of one function.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    out: &'a mut Vec<u8>,
    columns: Columns,
    last: Option<Positions>,
    /// The file of the function, and the file of the previous line.
    file: Rc<[u8]>,
    line_file: Rc<[u8]>,
}

impl<'a> Body<'a> {
    /// Begins a function.
    pub(crate) fn new(
        out: &'a mut Vec<u8>,
        columns: Columns,
        object: &[u8],
        file: &Rc<[u8]>,
        name: &[u8],
    ) -> Self {
        out.push(b'\n');
        push_name(out, "ob", object);
        push_name(out, "fl", file);
        push_name(out, "fn", name);
        let (file, line_file) = (Rc::clone(file), Rc::clone(file));
        Self { out, columns, last: None, file, line_file }
    }

    /// Sets the file of the following lines.
    pub(crate) fn file(&mut self, file: &Rc<[u8]>) {
        if Rc::ptr_eq(&self.line_file, file) || self.line_file == *file {
            return;
        }
        push_name(self.out, if self.file == *file { "fe" } else { "fi" }, file);
        self.line_file = Rc::clone(file);
    }

    /// Writes self cost.
    pub(crate) fn cost(&mut self, address: u64, line: u64, costs: &[u64]) {
        let positions = self.columns.of(address, line);
        self.columns.push(self.out, &positions, self.last.as_ref());
        self.last = Some(positions);
        push_costs(self.out, costs);
    }

    /// Writes a call to `callee`: `count` calls to the address and line `target`, from the address and line `from`.
    pub(crate) fn call(
        &mut self,
        callee: [&[u8]; 3],
        count: u64,
        target: (u64, u64),
        from: (u64, u64),
        costs: &[u64],
    ) {
        let [object, file, name] = callee;
        push_name(self.out, "cob", object);
        push_name(self.out, "cfi", file);
        push_name(self.out, "cfn", name);
        self.out.extend_from_slice(b"calls=");
        push_number(self.out, count);
        self.out.push(b' ');
        self.targeted(target);
        self.cost(from.0, from.1, costs);
    }

    /// Writes a jump.
    pub(crate) fn jump(
        &mut self,
        taken: u64,
        executed: Option<u64>,
        target: (u64, u64),
        from: (u64, u64),
    ) {
        push_jump(self.out, taken, executed);
        self.targeted(target);
        self.cost(from.0, from.1, &[]);
    }

    fn targeted(&mut self, (address, line): (u64, u64)) {
        let positions = self.columns.of(address, line);
        self.columns.push(self.out, &positions, self.last.as_ref());
        self.out.push(b'\n');
    }
}

/// Writes costs. Zeros at the end are omitted, as the format allows.
#[inline]
fn push_costs(out: &mut Vec<u8>, costs: &[u64]) {
    if let [cost] = costs {
        push_number(out, *cost);
        out.push(b'\n');
        return;
    }
    let count = costs.iter().rposition(|&cost| cost > 0).map_or(0, |last| last.saturating_add(1));
    let mut separator: &[u8] = b"";
    let shown = count.max(costs.len().min(1));
    for cost in costs.iter().take(shown) {
        out.extend_from_slice(separator);
        push_number(out, *cost);
        separator = b" ";
    }
    out.push(b'\n');
}

/// Writes a jump line up to its target.
pub(crate) fn push_jump(out: &mut Vec<u8>, taken: u64, executed: Option<u64>) {
    out.extend_from_slice(if executed.is_some() { b"jcnd=" } else { b"jump=" });
    push_number(out, taken);
    if let Some(executed) = executed {
        out.push(b'/');
        push_number(out, executed);
    }
    out.push(b' ');
}
