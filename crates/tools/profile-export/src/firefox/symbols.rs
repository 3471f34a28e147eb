//! Answers to the Firefox Profiler's questions for source and assembly: `/source/v1` and `/asm/v1`.
//!
//! The front end asks the server that the parameter `symbolServer` of its URL names. The questions come from a web page, so
//! they are hostile: nothing is answered but what belongs to the profile.

use disassembly::{Assembly, Syntax};
use profile::{CodeId, CodeSource, Profile};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::layout::Layout;

/// Where the code and the files of a profile are found by the names that [`write`](super::write()) gave them.
#[derive(Debug)]
pub struct Symbols {
    layout: Layout,
    codes: FxHashMap<(u32, u64), CodeId>,
    files: FxHashMap<String, Vec<u8>>,
}

/// Why there is no answer. The front end shows it.
pub type Refusal = &'static str;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AsmRequest {
    debug_name: String,
    debug_id: String,
    start_address: String,
}

#[derive(Deserialize)]
struct SourceRequest {
    file: String,
}

impl Symbols {
    /// Of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let layout = Layout::of(profile);
        let place = |(id, _)| Some((layout.code(profile, id)?, id));
        let codes = profile.numbered_codes().filter_map(place).collect();
        let files = profile.function_ids().map(|id| profile.file_of(id));
        let files = files.filter(|file| !file.is_empty()).map(|file| profile.text(file));
        let files =
            files.map(|file| (String::from_utf8_lossy(file).into_owned(), file.to_vec())).collect();
        Self { layout, codes, files }
    }

    /// Answers a question that was posted to `path`, as JSON; `None` if there is nothing at this path.
    #[must_use]
    pub fn answer(&self, path: &str, question: &[u8], code: &mut dyn CodeSource) -> Option<Value> {
        let answer = match path {
            "/asm/v1" => self.assembly(question, code),
            "/source/v1" => self.source(question, code),
            _ => return None,
        };
        Some(answer.unwrap_or_else(|cause| json!({ "error": cause })))
    }

    fn source(&self, question: &[u8], code: &mut dyn CodeSource) -> Result<Value, Refusal> {
        let asked: SourceRequest =
            serde_json::from_slice(question).map_err(|_| "not a question for a source")?;
        // Nothing else of this machine's files.
        let file =
            self.files.get(&asked.file).ok_or("no function of the profile is in this file")?;
        let source = code.source(file).ok_or("the file cannot be read")?;
        Ok(json!({
            "symbolsLastModified": null,
            "sourceLastModified": null,
            "file": asked.file,
            "source": String::from_utf8_lossy(&source.text),
        }))
    }

    fn assembly(&self, question: &[u8], code: &mut dyn CodeSource) -> Result<Value, Refusal> {
        let asked: AsmRequest =
            serde_json::from_slice(question).map_err(|_| "not a question for assembly")?;
        let libraries = (0..).zip(self.layout.libraries());
        let library = libraries
            .filter(|(_, it)| it.name == asked.debug_name && it.debug_id == asked.debug_id)
            .map(|(number, _)| number);
        let digits = asked.start_address.strip_prefix("0x").ok_or("no address")?;
        let start = u64::from_str_radix(digits, 16).map_err(|_| "no address")?;
        let mut ids = library.filter_map(|library| self.codes.get(&(library, start)));
        let id = *ids.next().ok_or("no code of the profile begins at this address")?;
        let listing = code.listing(id).ok_or("the machine code is not known")?;
        let assembly = Assembly::of(id, &listing, code, Syntax::Intel)
            .ok_or("code of this machine cannot be disassembled")?;
        let instructions = assembly.lines.iter().map(|line| {
            let label = line.label.map(|label| format!("L{label}: ")).unwrap_or_default();
            json!([line.offset, format!("{label}{}", line.text)])
        });
        Ok(json!({
            "startAddress": asked.start_address,
            "size": format!("{:#x}", listing.bytes.len()),
            "arch": if listing.machine == jit_code::elf_machine::AARCH64 { "aarch64" } else { "x86_64" },
            "syntax": ["Intel"],
            "instructions": instructions.collect::<Vec<_>>(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use profile::{Builder, Code, Frame, Function, FunctionKind, Listing, Source};

    use super::*;

    struct Known;

    impl CodeSource for Known {
        fn listing(&mut self, _: CodeId) -> Option<Listing> {
            Some(Listing {
                address: 0x1000,
                machine: 62,
                bytes: vec![0x48, 0x89, 0xc3, 0xeb, 0xfb],
                lines: Vec::new(),
            })
        }

        fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
            None
        }

        fn source(&mut self, file: &[u8]) -> Option<Source> {
            Some(Source { text: file.to_vec(), is_newer: false })
        }
    }

    fn profile() -> Profile {
        let mut builder = Builder::new();
        let process = builder.process(7, b"app");
        for (name, file) in [(&b"f"[..], &b"/src/a.js"[..]), (b"g", b"/src/\xff.js")] {
            let mut function = Function::new(builder.string(name), FunctionKind::Jitted);
            function.file = builder.string(file);
            let function = builder.function(function);
            let mut code = Code::new(function, 5);
            (code.process, code.address) = (Some(process), 0x1000);
            let code = builder.code(code);
            let mut frame = Frame::new(function);
            (frame.code, frame.address) = (Some(code), 0x1003);
            builder.frame(frame);
        }
        builder.finish()
    }

    fn ask(path: &str, question: &Value) -> Option<Value> {
        Symbols::of(&profile()).answer(path, question.to_string().as_bytes(), &mut Known)
    }

    #[test]
    fn codes_that_were_at_one_address_are_told_apart() {
        let profile = profile();
        let layout = Layout::of(&profile);
        let [library] = layout.libraries() else { panic!("one library") };
        for (frame, start) in profile.frames().iter().zip(["0x0", "0x10"]) {
            let begin = u64::from_str_radix(&start[2..], 16).unwrap();
            assert_eq!(layout.frame(&profile, frame), Some((0, begin + 3)));
            let question = json!({
                "name": library.name, "codeId": null, "debugName": library.name,
                "debugId": library.debug_id, "startAddress": start, "size": "0x5",
            });
            let answer = ask("/asm/v1", &question).unwrap();
            let instructions = json!([[0, "L1: mov     rbx, rax"], [3, "jmp     L1"]]);
            assert_eq!(answer["instructions"], instructions, "{answer}");
            assert_eq!((&answer["startAddress"], &answer["size"]), (&json!(start), &json!("0x5")));
        }
    }

    #[test]
    fn only_sources_of_the_profile_are_shown() {
        let source = |file: &str| ask("/source/v1", &json!({ "file": file })).unwrap();
        assert_eq!(source("/src/a.js")["source"], "/src/a.js");
        assert_eq!(source("/src/\u{fffd}.js")["source"], "/src/\u{fffd}.js");
        for file in ["/etc/passwd", "/src/../src/a.js", "", "/src/a.js\0"] {
            assert!(source(file)["error"].is_string(), "{file}");
        }
    }

    #[test]
    fn questions_may_be_anything() {
        let symbols = Symbols::of(&profile());
        for path in ["/asm/v1", "/source/v1"] {
            for question in [&b""[..], b"{}", b"[]", b"\xff", b"{\"file\":7}", &[b'['; 100_000]] {
                let answer = symbols.answer(path, question, &mut Known).unwrap();
                assert!(answer["error"].is_string(), "{answer}");
            }
        }
        assert_eq!(ask("/symbolicate/v5", &json!({})), None);
        for address in ["0x1", "16", "0xfffffffffffffffff", "-1"] {
            let question =
                json!({ "debugName": "JIT (app 7)", "debugId": "", "startAddress": address });
            assert!(ask("/asm/v1", &question).unwrap()["error"].is_string());
        }
    }
}
