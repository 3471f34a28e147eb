//! The commands of README.md, run as they are written there, in a new home folder and a new checkout.
//!
//! What they build is what this run of the tests has built: `cargo` is stood in for by a script, which takes it from there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use end_to_end::jitscribe::{demo_jit, fleet, java_agent, jitscribe, node_addon, preload};
use end_to_end::running::Running;
use end_to_end::tool::{ToolOutput, crate_dir, run, tool};
use tempfile::TempDir;
use test_privilege::needs;
use test_privilege::unshare;

/// What is done with a command.
enum Test {
    /// It succeeds, and prints this.
    Prints(&'static str),
    /// With names of what the reader has in place of those in the first list, it succeeds, and prints this.
    With(&'static [(&'static str, &'static str)], &'static str),
    /// It is a step of `fleet_commands_work`.
    Fleet,
    /// It runs these tests.
    These,
}
use Test::{Fleet, Prints, These, With};

/// Each command of README.md: the lines of its blocks of shell commands, and the commands in its text. In an order in which they can run.
const COMMANDS: &[(&str, Test)] = &[
    ("scripts/setup.sh run", Prints("perf's version")),
    ("scripts/demo.sh", Prints("baseline::mix")),
    ("scripts/test.sh", These),
    (r#"export PATH="$PATH:$HOME/.cargo/bin""#, Prints("")),
    ("cargo install --locked --path crates/tools/jitscribe-cli", Prints("")),
    (
        "cargo build --release --locked -p jitscribe-jvmti -p jitscribe-node -p jitscribe-preload",
        Prints(""),
    ),
    (
        "install -D -t ~/.cargo/lib/jitscribe target/release/libjitscribe_jvmti.so target/release/libjitscribe_node.so target/release/libjitscribe_preload.so",
        Prints(""),
    ),
    ("jitscribe record -- node app.js", Prints("named")),
    ("jitscribe report --open", With(&[("--open", OPENED)], "report.html")),
    ("jitscribe report --stdio", Prints("ofTheReader")),
    ("perf report", With(&[("perf report", "perf report --stdio")], "ofTheReader")),
    (
        "jitscribe record -p PID --duration 10",
        With(&[("PID", "$READERS"), ("10", "2 -f")], "named"),
    ),
    ("cargo build -p hello-jit", Prints("")),
    (
        "perf record -o perf.data target/debug/hello-jit && perf report --stdio -i perf.data",
        Prints("countdown"),
    ),
    (
        "jitscribe inject -i perf.data -o out.data",
        With(&[("jitscribe", BY_PERF)], "in jitted code"),
    ),
    (r#"make -C crates/bindings/jitscribe-capi install PREFIX="$HOME/.local""#, Prints("")),
    ("jitscribe check FILE", With(&[("FILE", "map")], "")),
    ("cargo install --locked --path fleet", Fleet),
    ("sudo install ~/.cargo/bin/jitscribe ~/.cargo/bin/jitscribe-fleet /usr/local/bin", Fleet),
    (
        "sudo jitscribe collect -a -- jitscribe export --parquet /var/lib/jitscribe/fleet -i {}",
        Fleet,
    ),
    ("sudo jitscribe fleet top /var/lib/jitscribe/fleet", Fleet),
];

/// The browser, which is not waited for, has the file.
const OPENED: &str =
    r#"--open && timeout 60 sh -c 'until test -s "$HOME/opened"; do sleep 0.1; done'"#;

/// A recording that perf made.
const BY_PERF: &str =
    "perf record -q -o perf.data node --perf-basic-prof app.js 1 >/dev/null && jitscribe";

/// What is not run: it is only named, or changes the machine for all its users.
const NOT_RUN: [&str; 4] = [
    "cargo install",
    "jitscribe agent",
    "perf inject --jit",
    "sudo sysctl kernel.perf_event_paranoid=1",
];

/// Stands in for cargo: gives what is built already, and fails for packages that are not there.
const CARGO: &str = r#"#!/bin/sh -e
case $1 in
    --version) exec "$CARGO" --version ;;
    install) path=; for word; do path=$word; done
        grep -q '^name = ' "$path/Cargo.toml"
        case $path in
            crates/tools/jitscribe-cli) built=$BUILT_JITSCRIBE ;;
            fleet) built=$BUILT_FLEET ;;
            *) echo "nothing stands in for: cargo $*" >&2; exit 1 ;;
        esac
        install -D -t "$HOME/.cargo/bin" "$built" ;;
    build) profile=debug package=
        while shift && [ $# -gt 0 ]; do
            case $1 in
                --release) profile=release ;;
                --profile) profile=$2; shift ;;
                --config) shift ;;
                --locked | --no-default-features) ;;
                -p) package="$package $2"; shift ;;
                *) echo "nothing stands in for: cargo build $*" >&2; exit 1 ;;
            esac
        done
        for name in $package; do
            case $name in
                jitscribe-cli) built=$BUILT_JITSCRIBE ;;
                demo-jit) built=$BUILT_DEMO_JIT ;;
                hello-jit) built=$BUILT_HELLO_JIT ;;
                jitscribe-jvmti) built=$BUILT_AGENT ;;
                jitscribe-node) built=$BUILT_NODE ;;
                jitscribe-preload) built=$BUILT_PRELOAD ;;
                *) echo "nothing stands in for: $name" >&2; exit 1 ;;
            esac
            install -D -t "target/$profile" "$built"
        done ;;
    *) echo "nothing stands in for: cargo $*" >&2; exit 1 ;;
esac
"#;

/// The program of a reader.
const APP: &str = "
function ofTheReader(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum * 31 + i) | 0; return sum; }
const end = Date.now() + Number(process.argv[2] ?? 2) * 1000;
let it = 0;
while (Date.now() < end) it += ofTheReader(1e6);
console.log(it);
";

fn root() -> &'static Path {
    crate_dir().parent().expect("the repository")
}

/// The commands in README.md: the lines of blocks, without comments, and what in the text or in a comment looks like one.
fn written() -> Vec<String> {
    let text = fs::read_to_string(root().join("README.md")).expect("README.md");
    let mut commands = Vec::new();
    let mut block = None;
    for line in text.lines() {
        match (block, line.strip_prefix("```")) {
            (None, Some(kind)) => block = Some(kind),
            (Some(_), Some(_)) => block = None,
            (Some("sh"), None) => {
                let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
                commands.push(command.trim().to_owned());
                // Others are named in its comment, after a colon.
                let others = comment.split_once(": ").map_or("", |(_, others)| others).split(", ");
                let is_command =
                    |it: &&str| it.starts_with("jitscribe ") || it.starts_with("perf ");
                commands.extend(others.filter(is_command).map(str::to_owned));
            }
            (Some(_), None) => {}
            (None, None) => {
                let quoted = line.split('`').skip(1).step_by(2);
                let programs = ["jitscribe", "make", "cargo", "sudo", "perf", "scripts/demo.sh"];
                let is_command = |it: &&str| {
                    it.split_once(' ').is_some_and(|(program, _)| programs.contains(&program))
                };
                commands.extend(quoted.filter(is_command).map(str::to_owned));
            }
        }
    }
    commands
}

#[test]
fn each_command_of_the_readme_is_tested() {
    let is_known = |command: &str| {
        NOT_RUN.contains(&command) || COMMANDS.iter().any(|(known, _)| *known == command)
    };
    let written = written();
    let unknown: Vec<_> = written.iter().filter(|command| !is_known(command)).collect();
    assert!(unknown.is_empty(), "not in COMMANDS: {unknown:#?}");
    let gone = COMMANDS.iter().filter(|(known, _)| !written.iter().any(|it| it == known));
    let gone: Vec<_> = gone.map(|(known, _)| known).collect();
    assert!(gone.is_empty(), "no longer in README.md: {gone:#?}");
}

/// A home and a checkout of a reader.
struct Reader {
    place: TempDir,
}

impl Reader {
    fn new() -> Self {
        let place = TempDir::with_prefix("jitscribe-readme-").expect("a temporary folder");
        let folders = ["home", "checkout/target", "stand-ins"].map(|name| place.path().join(name));
        folders.iter().for_each(|folder| fs::create_dir_all(folder).expect("made"));
        for entry in fs::read_dir(root()).expect("the repository").flatten() {
            if !["target", ".git"].iter().any(|name| entry.file_name() == *name) {
                let link = folders[1].with_file_name(entry.file_name());
                symlink(entry.path(), link).expect("a link");
            }
        }
        let script = |name, text: &str| {
            let script = folders[2].join(name);
            fs::write(&script, text).expect("written");
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("changed");
        };
        script("cargo", CARGO);
        script("sudo", "#!/bin/sh\nexec \"$@\"\n");
        script("xdg-open", "#!/bin/sh\ncp \"${1#file://}\" \"$HOME/opened\"\n");
        fs::write(place.path().join("checkout/app.js"), APP).expect("written");
        fs::write(place.path().join("checkout/map"), "1000 20 name\n").expect("written");
        Self { place }
    }

    fn checkout(&self) -> PathBuf {
        self.place.path().join("checkout")
    }

    /// Runs a command in a shell, or in what `shell` starts.
    fn prepare<'c>(&self, shell: &'c mut Command, command: &str) -> &'c mut Command {
        let built = PathBuf::from(jitscribe().get_program());
        let path = std::env::var("PATH").expect("a PATH");
        let [home, stand_ins] = ["home", "stand-ins"].map(|name| self.place.path().join(name));
        let path = format!("{}:{path}:{}/.cargo/bin", stand_ins.display(), home.display());
        let fleet = fleet();
        let fleets = fleet.get_envs().find_map(|(name, it)| it.filter(|_| name == "PATH"));
        let fleet = std::env::split_paths(fleets.expect("a path")).next().expect("a folder");
        shell.arg(command).current_dir(self.checkout()).stdin(Stdio::null());
        shell.env("HOME", &home).env("PATH", path).env("CARGO", env!("CARGO"));
        shell.env("CARGO_HOME", home.join(".cargo")).env_remove("CARGO_TARGET_DIR");
        shell.env("BUILT_JITSCRIBE", &built).env("BUILT_FLEET", fleet.join("jitscribe-fleet"));
        shell.env("BUILT_DEMO_JIT", demo_jit().get_program());
        shell.env("BUILT_HELLO_JIT", built.with_file_name("hello-jit"));
        shell
            .env("BUILT_AGENT", java_agent())
            .env("BUILT_NODE", node_addon())
            .env("BUILT_PRELOAD", preload());
        // The Makefile of the C library takes it from there, too.
        shell.env("BUILT", built.parent().expect("a folder"))
    }

    fn runs(&self, command: &str) -> ToolOutput {
        run(self.prepare(tool("sh").arg("-ec"), command))
    }
}

#[test]
fn commands_work_as_written() {
    needs!(Perf);
    let reader = Reader::new();
    let mut node = tool("node");
    node.args(["--perf-basic-prof", "app.js", "300"]).current_dir(reader.checkout());
    let node = Running::start(node.stdout(Stdio::null()));
    for (command, test) in COMMANDS {
        let (changes, wanted) = match test {
            Prints(wanted) => (&[][..], wanted),
            With(changes, wanted) => (*changes, wanted),
            Fleet | These => continue,
        };
        let mut command = (*command).to_owned();
        for (word, by) in changes {
            command = command.replace(word, by);
        }
        // Last, as its digits may look like one of the words.
        let printed = reader.runs(&command.replace("$READERS", &node.pid().to_string()));
        let printed = printed.stdout + &printed.stderr;
        assert!(printed.contains(wanted), "no {wanted:?} is printed by {command}:\n{printed}");
    }
}

#[test]
fn fleet_commands_work() {
    needs!(Perf, Mounts, OtherUsers);
    let reader = Reader::new();
    reader.runs("cargo install --locked --path crates/tools/jitscribe-cli");
    // Folders of its own in place of the machine's; Ctrl-C after some seconds.
    let mut script = "
        mount -t tmpfs none /usr/local/bin
        mount -t tmpfs none /var/lib
        node --perf-basic-prof app.js 60 >/dev/null &
        trap \"kill $!\" EXIT
    "
    .to_owned();
    for (command, _) in COMMANDS.iter().filter(|(_, test)| matches!(test, Fleet)) {
        let is_endless = command.contains(" collect ");
        script += if is_endless { "timeout --signal INT 12 " } else { "" };
        script += command;
        script += if is_endless { " || test $? = 124\n" } else { "\n" };
    }
    let mut unshare = unshare();
    unshare.args(["--mount", "env", "--default-signal=INT", "sh", "-ec"]);
    let printed = run(reader.prepare(&mut unshare, &script));
    assert!(printed.stdout.contains("ofTheReader"), "{}", printed.stdout);
}
