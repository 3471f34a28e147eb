//! What valgrind's tools write: each reader on any bytes. The first byte says which.
use std::rc::Rc;

use valgrind_log::{Frame, Named, Namer, cachegrind, dhat, massif, text, xml};

/// Knows nothing, or all addresses whose last bit is set, with calls inlined by the bits before it.
struct Known(bool);

impl Namer for Known {
    fn name(&mut self, _: Option<u32>, address: u64) -> Option<Rc<Named>> {
        let frame = |number: u64| Frame {
            function: format!("f{number} <&\"\n").into(),
            file: b"a.c".to_vec(),
            line: u32::from(number > 0),
            ..Frame::default()
        };
        let frames = (0..=(address >> 1 & 3)).map(frame).collect();
        (self.0 && address & 1 == 1).then(|| Named { frames, doubtful: false }.into())
    }
}

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    for known in [false, true] {
        let mut out = Vec::new();
        let namer = &mut Known(known);
        let done = match which % 5 {
            0 => text::rewrite(bytes, &mut out, namer),
            1 => xml::rewrite(bytes, &mut out, namer),
            2 => massif::rewrite(bytes, &mut out, namer),
            3 => {
                dhat::survey(bytes, namer).and_then(|found| dhat::rewrite(bytes, &mut out, &found))
            }
            _ => return drop(cachegrind::read(bytes)),
        };
        let Ok(counts) = done else { return };
        assert!(counts.named <= counts.unknown && counts.unknown <= counts.frames);
        // Where nothing is named, nothing changes.
        if counts.named == 0 {
            assert!(out == bytes);
        }
    }
}
