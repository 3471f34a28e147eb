//! `.xdata` and `.pdata` of a DLL are what `unwind-info` encodes for Windows from the description itself. The DLL gets it from
//! `.eh_frame`.

use crate::common::{Loadable, assert_contains, run, write_object, x86_64};
use code_image::{ObjectFormat, VisibleCode};
use jit_code::{Code, Row, Unwind};
use object::{Object as _, ObjectSection as _};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use unwind_info::{Machine, behind_code, windows};

const START: u64 = 0x7f00_0000_0000;
const SIZE: usize = 64;

#[derive(Clone, Debug)]
struct Description {
    offset: u32,
    register: u16,
    words: i32,
    saved: Vec<(u16, i32)>,
}

/// Descriptions of a code: what compilers write, and what makes no sense, or has no form on Windows.
fn descriptions() -> impl Strategy<Value = Vec<Description>> {
    let register = prop_oneof![4 => Just(7_u16), 2 => Just(6), 1 => 0..16_u16];
    let saved = btree_map(prop_oneof![Just(3_u16), Just(6), 12..16_u16, 0..16_u16], 2..9_i32, 0..4)
        .prop_map(|saved| {
            saved.into_iter().map(|(register, word)| (register, -8 * word)).collect()
        });
    let state = (register, 1..300_i32, saved);
    let offsets = btree_set(0..SIZE as u32, 0..8);
    (offsets, vec(state, 8)).prop_map(|(offsets, states)| {
        let row =
            |(offset, (register, words, saved))| Description { offset, register, words, saved };
        offsets.into_iter().zip(states).map(row).collect()
    })
}

/// A DLL of codes with the same frames.
fn dll(eh_frame: &[u8], count: u64) -> Loadable {
    let code = |number: u64| {
        let code = Code::new(&[0x90; SIZE]).runs_at(START + 0x100 * number).named("f");
        VisibleCode::whole(code.unwind(Unwind::EhFrame(eh_frame)))
    };
    let codes: Vec<_> = (0..count).map(code).collect();
    write_object(ObjectFormat::Pe, x86_64(), START..START + 0x1000, &codes)
}

/// The content of the sections of a DLL with a code at its start, and how many frames have no form there.
fn sections(eh_frame: &[u8]) -> (Option<Vec<u8>>, Option<Vec<u8>>, u64) {
    let object = dll(eh_frame, 1);
    let bytes = std::fs::read(object.path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let data = |name| Some(file.section_by_name(name)?.data().unwrap().to_vec());
    (data(".xdata"), data(".pdata"), object.finished.unwind.inexpressible)
}

proptest! {
    #[test]
    fn frames_are_those_that_were_described(descriptions in descriptions()) {
        let rows: Vec<Row<'_>> = descriptions
            .iter()
            .map(|it| Row::new(it.offset, it.register, 8 * it.words).saved(&it.saved))
            .collect();
        let mut tables = Vec::new();
        let sizes =
            behind_code(Machine::X86_64, SIZE as u64, &Unwind::Rows(&rows), &mut tables).unwrap();
        let (infos, functions, inexpressible) = sections(&tables[..sizes.eh_frame]);
        let mut expected = Vec::new();
        match windows::encode(SIZE as u64, &Unwind::Rows(&rows), &mut expected) {
            Ok(pieces) => {
                prop_assert_eq!(infos, Some(expected));
                prop_assert_eq!(inexpressible, 0);
                let functions = functions.unwrap();
                let (fields, _) = functions.as_chunks::<4>();
                let fields: Vec<u32> = fields.iter().map(|field| u32::from_le_bytes(*field)).collect();
                // Behind the page of the code and that of the exports, and the relocations.
                let expected: Vec<u32> = pieces
                    .iter()
                    .flat_map(|it| [0x1000 + it.begin, 0x1000 + it.end, 0x4000 + it.info])
                    .collect();
                prop_assert_eq!(fields, expected);
            }
            Err(_) => {
                prop_assert_eq!((infos, functions), (None, None));
                prop_assert_eq!(inexpressible, 1);
            }
        }
    }
}

/// The same prologue in many functions is in the file once.
#[test]
fn equal_frames_share_their_info() {
    let mut tables = Vec::new();
    let unwind = Unwind::FRAME_POINTER;
    let sizes = behind_code(Machine::X86_64, SIZE as u64, &unwind, &mut tables).unwrap();
    let object = dll(&tables[..sizes.eh_frame], 3);
    let listed = run("llvm-readobj", &["--unwind"], &object.path());
    assert_eq!(listed.matches("RuntimeFunction {").count(), 3);
    assert_eq!(listed.matches("UnwindInfoAddress: (0x180004000)").count(), 3, "{listed}");
    assert_contains(
        &listed,
        "PrologSize: 4
         FrameRegister: RBP (0x5)
         FrameOffset: 0x0
         UnwindCodeCount: 2
         UnwindCodes [
         0x04: SET_FPREG reg=RBP, offset=0x0
         0x01: PUSH_NONVOL reg=RBP
         ]",
    );
}
