//! The keys of functions, codes and stacks of a profile, each computed once.

use disassembly::mask_addresses;
use profile::{CodeId, CodeKey, CodeSource, FunctionId, FunctionKey, Profile, StackId, stack_id};
use rustc_hash::FxHashMap;

/// The keys, as tables have them: the bits of an id as a signed number.
pub struct Keys<'p> {
    profile: &'p Profile,
    code: &'p mut dyn CodeSource,
    functions: Vec<u64>,
    codes: FxHashMap<CodeId, i64>,
    stacks: FxHashMap<StackId, i64>,
}

impl<'p> Keys<'p> {
    pub fn new(profile: &'p Profile, code: &'p mut dyn CodeSource) -> Self {
        let functions = profile.functions().iter();
        let functions = functions.map(|function| FunctionKey::of(profile, function).id());
        Self {
            profile,
            functions: functions.collect(),
            code,
            codes: FxHashMap::default(),
            stacks: FxHashMap::default(),
        }
    }

    pub fn function(&self, id: FunctionId) -> i64 {
        self.id(id).cast_signed()
    }

    fn id(&self, id: FunctionId) -> u64 {
        self.functions.get(id.index()).copied().unwrap_or_default()
    }

    /// The functions of a stack, the outermost first.
    pub fn functions_of(&self, stack: StackId) -> Vec<u64> {
        let mut functions: Vec<u64> =
            self.profile.frames_of(stack).map(|frame| self.id(frame.function)).collect();
        functions.reverse();
        functions
    }

    pub fn stack(&mut self, id: StackId) -> i64 {
        if let Some(&key) = self.stacks.get(&id) {
            return key;
        }
        let key = stack_id(&self.functions_of(id)).cast_signed();
        self.stacks.insert(id, key);
        key
    }

    pub fn code(&mut self, id: CodeId) -> i64 {
        if let Some(&key) = self.codes.get(&id) {
            return key;
        }
        let row = self.profile.code(id);
        let listing = row.process.and_then(|_| self.code.listing(id));
        let masked = listing.map(|mut listing| {
            // Of a machine whose instructions cannot be decoded, the bytes count as they are.
            mask_addresses(listing.machine, row.address, &mut listing.bytes);
            listing.bytes
        });
        let key = CodeKey::of(self.profile, row, masked.as_deref()).id().cast_signed();
        self.codes.insert(id, key);
        key
    }
}
