//! Where profiles find the symbols and lines of a stripped program: in separate debug files next to it, by build-id, and from a server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use end_to_end::jitscribe::jitscribe;
use end_to_end::live::{Recorder, Recording, workload};
use end_to_end::perf::Perf;
use end_to_end::tool::{cache, ended, path_behind, run, tool};
use serde_json::Value;

/// A recording of a program that is stripped afterwards.
struct Stripped {
    recording: Recording,
    program: PathBuf,
    /// What `strip` took away.
    debug: PathBuf,
    build_id: String,
    /// What `annotate` shows before.
    whole: Value,
}

impl Stripped {
    fn new() -> Self {
        let recorder =
            Recorder::new().options(&["-k", "mono", "-F", "999", "-g", "-e", "cpu-clock"]);
        let dir = recorder.dir().to_owned();
        let (source, program) = (dir.join("spin.c"), dir.join("spin"));
        fs::copy(workload("spin.c"), &source).expect("a source");
        run(tool("cc").args(["-O2", "-g", "-Wl,--build-id", "-o"]).args([&program, &source]));
        let recording = recorder.record(&[program.to_str().expect("a UTF-8 path"), "300000"]);
        // In a folder where nothing looks for it.
        let debug = dir.join("elsewhere").join("spin.debug");
        fs::create_dir(dir.join("elsewhere")).expect("a folder");
        let whole = annotated(&recording, &[]).expect("a function");
        run(tool("objcopy").arg("--only-keep-debug").args([&program, &debug]));
        let notes = run(tool("readelf").arg("-n").arg(&program)).stdout;
        let build_id = notes.split("Build ID: ").nth(1).expect("a build-id");
        let build_id = build_id.split_whitespace().next().expect("a build-id").to_owned();
        run(tool("strip").arg(&program));
        run(tool("objcopy").arg(format!("--add-gnu-debuglink={}", debug.display())).arg(&program));
        let stripped = Self { recording, program, debug, build_id, whole };
        stripped.expect_unnamed(&[]);
        stripped
    }

    /// A folder for this test.
    fn dir(&self) -> &Path {
        self.recording.dir()
    }

    /// Puts the debug file here.
    fn put(&self, place: &Path) {
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        fs::copy(&self.debug, place).expect("a copy");
    }

    /// The function, its lines and its inlined calls are known as before.
    #[track_caller]
    fn expect_named(&self, variables: &[(&str, &Path)]) {
        assert_eq!(annotated(&self.recording, variables).as_ref(), Some(&self.whole));
    }

    #[track_caller]
    fn expect_unnamed(&self, variables: &[(&str, &Path)]) {
        assert_eq!(annotated(&self.recording, variables), None);
    }
}

/// What `annotate` prints of the function; `None` if there is no such function.
fn annotated(recording: &Recording, variables: &[(&str, &Path)]) -> Option<Value> {
    let mut command = jitscribe();
    command.args(["annotate", "spin", "--json", "-i"]).arg(recording.data());
    command.env("HOME", recording.dir().join("home")).env_remove("DEBUGINFOD_URLS");
    command.envs(variables.iter().copied());
    let printed = ended(&mut command);
    if printed.code != Some(0) {
        assert!(printed.stderr.contains("spin"), "{}", printed.stderr);
        return None;
    }
    let shown: Value = serde_json::from_str(&printed.stdout).expect("JSON");
    (shown["function"]["name"] == "spin").then_some(shown)
}

/// From all places in turn, for one recording: only the last leaves a file.
#[test]
fn debug_files_are_found() {
    let stripped = Stripped::new();
    by_the_link_in_the_program(&stripped);
    stripped.expect_unnamed(&[]);
    from_a_server(&stripped);
    stripped.expect_unnamed(&[]);
    by_build_id(&stripped);
}

fn by_the_link_in_the_program(stripped: &Stripped) {
    let code = &stripped.whole["codes"][0];
    let frames = |instruction: &Value| instruction["frames"].as_array().expect("frames").len();
    let instructions = code["instructions"].as_array().expect("instructions");
    assert!(instructions.iter().any(|it| frames(it) == 2), "no inlined call in {code}");
    for place in [stripped.dir().join("spin.debug"), stripped.dir().join(".debug/spin.debug")] {
        stripped.put(&place);
        stripped.expect_named(&[]);
        // perf finds the same function there.
        let samples = Perf::installed().samples(&stripped.recording.data());
        let named = samples.iter().filter(|sample| sample.name() == Some("spin")).count();
        assert_eq!(code["samples"], named, "{}", place.display());
        // The debug file of another program with the same name is not used.
        let source = stripped.dir().join("other.c");
        fs::write(&source, "int spin(void) { return 1; } int main(void) { return spin(); }")
            .expect("a source");
        run(tool("cc").args(["-g", "-Wl,--build-id", "-o"]).args([&place, &source]));
        stripped.expect_unnamed(&[]);
        fs::remove_file(&place).expect("the file");
    }
    assert!(stripped.program.is_file());
}

fn by_build_id(stripped: &Stripped) {
    let (folder, rest) = stripped.build_id.split_at(2);
    let home = stripped.dir().join("home");
    stripped.put(&home.join(".debug/.build-id").join(folder).join(rest).join("debug"));
    stripped.expect_named(&[]);
    stripped.expect_unnamed(&[("HOME", &stripped.dir().join("other"))]);
}

/// Serves one file at one path, and nothing else.
fn serve(path: String, content: Vec<u8>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("a port").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut head = BufReader::new(stream.try_clone().expect("a copy")).lines();
            let request = head.next().expect("a request").expect("a request");
            while head.next().is_some_and(|line| !line.expect("a header").is_empty()) {}
            let (status, body) = match request.starts_with(&format!("GET {path} ")) {
                true => ("200 OK", &*content),
                false => ("404 Not Found", &b""[..]),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            // The client may have seen enough.
            _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    port
}

fn from_a_server(stripped: &Stripped) {
    let programs = cache().join("debuginfod/usr/bin");
    tool(programs.join("debuginfod-find"));
    let path = PathBuf::from(path_behind(&programs));
    let content = fs::read(&stripped.debug).expect("the debug file");
    let port = serve(format!("/buildid/{}/debuginfo", stripped.build_id), content);
    let other = serve("/buildid/00/debuginfo".into(), Vec::new());
    let servers = |port| PathBuf::from(format!("http://127.0.0.1:{port}"));
    let kept = [stripped.dir().join("none"), stripped.dir().join("some")];
    let variables = |port| [("DEBUGINFOD_URLS", servers(port)), ("PATH", path.clone())];
    for (port, kept, is_named) in [(other, &kept[0], false), (port, &kept[1], true)] {
        let variables = variables(port);
        let mut variables: Vec<(&str, &Path)> =
            variables.iter().map(|(name, value)| (*name, value.as_path())).collect();
        variables.push(("DEBUGINFOD_CACHE_PATH", kept));
        match is_named {
            true => stripped.expect_named(&variables),
            false => stripped.expect_unnamed(&variables),
        }
    }
}
