//! The codes of a profile: functions of files, and compilations of jitted functions.

use std::ops::Range;

use jitscribe_inject::Warning;
use jitscribe_inject::files::pid_of_jitted;
use jitscribe_inject::jitted_function::{JittedFunctions, JittedName};
use profile::{
    Builder, Code, CodeId, Function, FunctionId, FunctionKind, ModuleId, ModuleKind, ProcessId,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bpf::BpfPrograms;
use crate::code_lists::{CodeLists, ListedCode};
use crate::functions::native;
use crate::modules::{InFile, Module, Modules};
use crate::recorded_code::{CodePlace, Place};
use crate::threads::Threads;

/// The codes so far.
#[derive(Debug, Default)]
pub struct Codes {
    /// The functions with code in images.
    pub functions: JittedFunctions,
    /// How many modules' functions are in `functions`.
    counted: usize,
    /// The compilations that the lists of codes have, and where each was seen first: several images may have it.
    lists: CodeLists,
    first_places: FxHashMap<usize, (usize, u64)>,
    /// By module and address in it.
    known: FxHashMap<(usize, u64), CodeId>,
    /// By number of the function of a BPF program.
    of_programs: FxHashMap<usize, CodeId>,
    /// By number of the code.
    places: Vec<CodePlace>,
    /// The jitted functions of which a code was sampled.
    sampled: FxHashSet<FunctionId>,
}

/// A symbol of a file, and an address that it covers.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// The number of the file.
    pub module: usize,
    /// Whether the file is an image of jitted code.
    pub is_in_image: bool,
    pub name: Vec<u8>,
    range: Range<u64>,
    /// The address in the file.
    pub address: u64,
    /// Where the symbol begins in the process.
    start_in_process: u64,
    process: ProcessId,
}

/// A compilation of which the image has no sample.
#[derive(Clone, Copy, Debug)]
pub struct Unsampled {
    /// Its number in the lists.
    listed: usize,
    /// The number of its image, and the address in it.
    pub place: Option<(usize, u64)>,
}

impl Symbol {
    /// The symbol at a place in a file, whose address in the file's own terms is `address`.
    pub fn at(file: &Module, place: InFile, address: u64) -> Option<Self> {
        let found = file.symbol(address)?;
        let into = address.saturating_sub(found.range.start);
        Some(Self {
            module: place.module,
            is_in_image: file.kind == ModuleKind::Image,
            name: found.name,
            range: found.range,
            address,
            start_in_process: place.address.saturating_sub(into),
            process: place.process,
        })
    }
}

impl Codes {
    /// Reads the names of all functions of images up to this one, before the first of them is named.
    pub fn read_names(&mut self, module: usize, modules: &Modules<'_>) {
        while self.counted <= module {
            let image = modules.get(self.counted).filter(|file| file.kind == ModuleKind::Image);
            if let Some(image) = image {
                self.lists.read_for(&image.path, modules.files());
                self.functions.add_originals(std::mem::take(&mut self.lists.originals));
                image.each_name(|name| self.functions.add(name));
            }
            self.counted = self.counted.saturating_add(1);
        }
    }

    /// The number of the compilation that begins where the symbol does. Of a code that is partly hidden, the symbol begins later.
    pub fn listed(&self, modules: &Modules<'_>, symbol: &Symbol) -> Option<usize> {
        let image = modules.get(symbol.module).filter(|_| symbol.is_in_image)?;
        let (listed, start) = self.lists.at(&image.path, symbol.range.start)?;
        // Lists of earlier versions have the places of hidden beginnings, too, where the image has other code.
        let is_it = self.lists.get(listed)?.symbol == String::from_utf8_lossy(&symbol.name);
        (is_it && start == symbol.range.start).then_some(listed)
    }

    /// The symbol of a compilation in the image in which it was seen first.
    pub fn in_first_image(&mut self, listed: usize, mut symbol: Symbol) -> Symbol {
        let place = (symbol.module, symbol.range.start);
        let &mut (module, start) = self.first_places.entry(listed).or_insert(place);
        let moved = |address: u64| address.wrapping_sub(place.1).wrapping_add(start);
        symbol.module = module;
        symbol.address = moved(symbol.address);
        symbol.range = moved(symbol.range.start)..moved(symbol.range.end);
        symbol
    }

    /// The code of a symbol in `file`, whose number in the profile is `id`.
    pub fn code(
        &mut self,
        builder: &mut Builder,
        file: &Module,
        id: Option<ModuleId>,
        symbol: &Symbol,
        listed: Option<usize>,
        threads: &Threads,
    ) -> CodeId {
        let key = (symbol.module, symbol.range.start);
        if let Some(&code) = self.known.get(&key) {
            return code;
        }
        let size = symbol.range.end.saturating_sub(symbol.range.start);
        let mut code = if symbol.is_in_image {
            let owner = pid_of_jitted(&file.path).and_then(|pid| threads.with_pid(pid));
            let process = owner.unwrap_or(symbol.process);
            let runtime = threads.runtime(process);
            let mut code = self.jitted(builder, &symbol.name, size, runtime);
            code.process = Some(process);
            code.address = symbol.start_in_process;
            if let Some(listed) = listed.and_then(|listed| self.lists.get(listed)) {
                describe(builder, &mut code, listed);
            }
            self.sampled.insert(code.function);
            code
        } else {
            let function = native(builder, &symbol.name, FunctionKind::Native);
            let mut code = Code::new(function, size);
            code.symbol = builder.string(&symbol.name);
            code
        };
        (code.module, code.module_address) = (id, symbol.range.start);
        let code = self.add(builder, code, Place::Module(symbol.module));
        self.known.insert(key, code);
        code
    }

    /// The code of a function of a BPF program, and the function.
    pub fn of_program(
        &mut self,
        builder: &mut Builder,
        programs: &BpfPrograms,
        number: usize,
        name: &str,
        module: ModuleId,
    ) -> Option<(CodeId, FunctionId)> {
        if let Some(&code) = self.of_programs.get(&number) {
            return Some((code, builder.code_row(code)?.function));
        }
        let program = programs.get(number)?;
        let name = builder.string(name.as_bytes());
        let mut function = Function::new(name, FunctionKind::Kernel);
        if let Some(line) = program.line_at(program.address()) {
            function.file = builder.string(&line.file);
            (function.line, function.column) = (line.line, line.column);
        }
        let function = builder.function(function);
        let mut code = Code::new(function, program.size());
        code.symbol = name;
        (code.module, code.module_address) = (Some(module), program.address());
        let code = self.add(builder, code, Place::Program(number));
        self.of_programs.insert(number, code);
        Some((code, function))
    }

    /// The compilations that were not sampled themselves, and in which image each is.
    pub fn unsampled(&self, modules: &Modules<'_>) -> Vec<Unsampled> {
        let all = self.lists.iter();
        let unsampled = all.filter(|(listed, _)| !self.first_places.contains_key(listed));
        let found = unsampled.map(|(listed, code)| {
            let place = code
                .images
                .iter()
                .find_map(|(image, address)| Some((modules.image(image.as_bytes())?, *address)));
            Unsampled { listed, place }
        });
        found.collect()
    }

    /// Adds one of them, if other code of its function was sampled. `id` is the number of its image in the profile.
    pub fn add_unsampled(
        &mut self,
        builder: &mut Builder,
        unsampled: &Unsampled,
        id: Option<ModuleId>,
        threads: &Threads,
    ) {
        let Some(listed) = self.lists.get(unsampled.listed) else { return };
        let Some(process) = threads.with_pid(listed.pid) else { return };
        let runtime = threads.runtime(process);
        let mut code = self.jitted(builder, listed.symbol.as_bytes(), listed.size, runtime);
        if !self.sampled.contains(&code.function) {
            return;
        }
        (code.process, code.address) = (Some(process), listed.address);
        describe(builder, &mut code, listed);
        let (module, start) = unsampled.place.unwrap_or((usize::MAX, 0));
        (code.module, code.module_address) = (id, start);
        self.add(builder, code, Place::Module(module));
    }

    /// A code in an image.
    fn jitted(
        &self,
        builder: &mut Builder,
        symbol: &[u8],
        size: u64,
        runtime: Option<ModuleId>,
    ) -> Code {
        let name = JittedName::of(symbol);
        let mut code = Code::new(self.functions.of_code(builder, &name, runtime), size);
        code.symbol = builder.string(symbol);
        code.tier = builder.string(name.tier);
        code
    }

    fn add(&mut self, builder: &mut Builder, code: Code, place: Place) -> CodeId {
        let row = builder.function_row(code.function);
        let function = row.map(|row| builder.text(row.name).to_vec()).unwrap_or_default();
        let range = code.module_address..code.module_address.saturating_add(code.size);
        self.places.push(CodePlace { place, range, function });
        builder.code(code)
    }

    /// The user of the process whose code is in the image at `path`, if that is known.
    pub fn user_of(&self, path: &[u8]) -> Option<u32> {
        self.lists.user_of(path)
    }

    /// Where each code is, the functions, and what is wrong with the lists.
    pub fn into_places(self) -> (Vec<CodePlace>, JittedFunctions, Vec<Warning>) {
        (self.places, self.functions, self.lists.warnings)
    }
}

/// What the list of codes says of a code.
fn describe(builder: &mut Builder, code: &mut Code, listed: &ListedCode) {
    (code.loaded, code.gone) = (listed.loaded, listed.gone);
    if !listed.tier.is_empty() {
        code.tier = builder.string(listed.tier.as_bytes());
    }
}
