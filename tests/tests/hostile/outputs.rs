//! Outputs in folders of other users: what is written follows no link that they put there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::{Ended, ended, output, path_behind, run};
use tempfile::TempDir;
use test_privilege::needs;
use test_privilege::{Privilege, have};

/// What a shell command prints that takes the place of a tool, in a run of `jitscribe`.
fn said_by(tool: &str, shell: &str, arguments: impl FnOnce(&mut Command)) -> String {
    let programs = TempDir::with_prefix("jitscribe-programs-").expect("a folder");
    let (program, told) = (programs.path().join(tool), programs.path().join("told"));
    let script = format!("#!/bin/sh\n{shell} >> '{}'\nexit 1\n", told.display());
    fs::write(&program, script).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    let mut command = jitscribe();
    arguments(&mut command);
    command.env("PATH", path_behind(programs.path()));
    let done = output(&mut command);
    fs::read_to_string(&told).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

/// Where `jitscribe record -o OUTPUT` lets perf write.
fn recording_of_perf(output_file: &Path) -> PathBuf {
    let words = said_by("perf", "printf '%s\\n' \"$@\"", |record| {
        record.args(["record", "-o"]).arg(output_file).args(["--", "true"]);
    });
    let words: Vec<&str> = words.lines().collect();
    let option = words.windows(2).find(|words| words[0] == "-o").expect("perf has an output");
    PathBuf::from(option[1])
}

/// A user who sees root's workspace could rename it, and put a folder with links in its place.
#[test]
fn a_workspace_is_where_no_other_user_can_replace_it() {
    let own = TempDir::with_prefix("jitscribe-own-").expect("a folder");
    let inside = |path: &Path, folder: &TempDir| {
        path.starts_with(folder.path().canonicalize().expect("a folder"))
    };
    assert!(inside(&recording_of_perf(&own.path().join("perf.data")), &own));
    needs!(OtherUsers);
    let of_user = TempDir::with_prefix("jitscribe-user-").expect("a folder");
    chown(of_user.path(), Some(65534), Some(65534)).expect("root");
    let below = of_user.path().join("below");
    fs::create_dir(&below).expect("a folder");
    for folder in [of_user.path(), &below] {
        let recording = recording_of_perf(&folder.join("perf.data"));
        assert!(!inside(&recording, &of_user), "{}", recording.display());
        let left = recording.parent().expect("a folder").exists();
        assert!(!left, "{} is left", recording.display());
        let mut kept = jitscribe();
        kept.args(["record", "--keep-raw", "-o"]).arg(folder.join("perf.data"));
        let Ended { code, stderr: said, .. } = ended(kept.args(["--", "true"]));
        assert!(code != Some(0) && said.contains("other users may replace"), "{said}");
    }
    assert!(!of_user.path().join("perf.data").exists());
}

/// Where a program under `jitscribe record --tool callgrind -o OUTPUT` is to write object files.
fn folder_of_objects(output_file: &Path) -> PathBuf {
    let said = said_by("valgrind", "echo \"$JITSCRIBE_DIR\"", |record| {
        record.args(["record", "--tool", "callgrind", "-o"]).arg(output_file).args(["--", "true"]);
    });
    PathBuf::from(said.trim_end())
}

/// The folder would be a link of the user's by then, through which the program writes as root.
#[test]
fn object_files_are_where_no_other_user_can_replace_them() {
    let own = TempDir::with_prefix("jitscribe-own-").expect("a folder");
    let folder = own.path().canonicalize().expect("a folder");
    assert_eq!(folder_of_objects(&own.path().join("out")), folder.join("out.jit"));
    needs!(OtherUsers);
    let of_user = TempDir::with_prefix("jitscribe-user-").expect("a folder");
    chown(of_user.path(), Some(65534), Some(65534)).expect("root");
    let objects = folder_of_objects(&of_user.path().join("out"));
    assert!(objects.starts_with("/var/tmp"), "{}", objects.display());
    assert!(!objects.exists(), "{} is left, and empty", objects.display());
    assert!(!of_user.path().join("out.jit").exists());
}

/// Verbs that write a file, whose path comes behind.
const FILES: [&str; 10] = [
    "inject -i g.data -o",
    "report -i in.data -o",
    "export --pprof -i in.data -o",
    "export --firefox -i in.data -o",
    "export --folded -i in.data -o",
    "diff --before in.data --after in.data --html -o",
    "callgrind --jitdump jit-11229.dump callgrind.out -o",
    "memcheck --jitdump jit-11229.dump memcheck.log -o",
    "massif --jitdump jit-11229.dump massif.out -o",
    "record -o",
];
/// Verbs that write into a folder.
const FOLDERS: [&str; 5] = [
    "inject -i g.data -o new.data --image-dir",
    "export --parquet",
    "dump --jitdump jit-11229.dump --elf",
    "demo -o",
    "record -o new.data --image-dir",
];

/// A folder with a recording, and with what Valgrind's tools wrote of the same process.
fn inputs() -> Corpus {
    let corpus = Corpus::unpack("wasmtime-jitdump");
    let write = |name: &str, text: &str| fs::write(corpus.dir().join(name), text).expect("a file");
    write(
        "callgrind.out",
        "version: 1\ncreator: callgrind\npid: 11229\ncmd: x\npart: 1\npositions: instr line\nevents: Ir\n\
         summary: 5\n\nob=???\nfl=???\nfn=(1) 0x7f0000001000\n0x7f0000001000 0 5\n",
    );
    write(
        "memcheck.log",
        "==11229== Memcheck, a memory error detector\n==11229== Invalid read of size 4\n\
         ==11229==    at 0x7F0000001000: ???\n",
    );
    write(
        "massif.out",
        "desc: x\ncmd: x\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\n\
         mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n",
    );
    run(jitscribe().args(["inject", "-i", "g.data", "-o", "in.data"]).current_dir(corpus.dir()));
    corpus
}

/// The command in a folder with inputs. What else verbs need comes behind the output.
fn verb(inputs: &Corpus, words: &str, at: &str, options: &[&str]) -> Command {
    let mut command = jitscribe();
    let (verb, words) = words.split_once(' ').expect("options");
    command.arg(verb).args(options).args(words.split(' ')).arg(at).current_dir(inputs.dir());
    match verb {
        "record" => command.args(["--", "true"]),
        "export" if words == "--parquet" => command.args(["-i", "in.data", "--service", "s"]),
        _ => &mut command,
    };
    command
}

/// In the place of the output is a link of another user to a file of root. Without `--force` it stays, with it, it is replaced:
/// the file is not written to.
#[test]
fn no_verb_writes_through_a_link() {
    let inputs = inputs();
    let folder = inputs.dir().join("of-user");
    let precious = inputs.dir().join("precious");
    fs::write(&precious, "precious").expect("a file");
    for words in FILES {
        fs::create_dir(&folder).expect("a folder");
        symlink("../precious", folder.join("out")).expect("a link");
        if have(&[Privilege::OtherUsers]) {
            for path in [&folder, &folder.join("out")] {
                lchown(path, Some(65534), Some(65534)).expect("root");
            }
        }
        let Ended { code, stderr: said, .. } = ended(&mut verb(&inputs, words, "of-user/out", &[]));
        assert!(code != Some(0) && said.contains("already exists"), "{words}: {said}");
        assert!(folder.join("out").is_symlink(), "{words}");
        output(&mut verb(&inputs, words, "of-user/out", &["--force"]));
        assert_eq!(fs::read(&precious).expect("a file"), b"precious", "{words}");
        fs::remove_dir_all(&folder).expect("it is there");
    }
}

/// In the place of the folder is a link of another user to a folder of root: nothing is created there.
#[test]
fn no_verb_writes_into_a_folder_behind_a_link() {
    needs!(OtherUsers);
    let inputs = inputs();
    let roots = inputs.dir().join("of-root");
    fs::create_dir(&roots).expect("a folder");
    symlink("of-root", inputs.dir().join("link")).expect("a link");
    lchown(inputs.dir().join("link"), Some(65534), Some(65534)).expect("root");
    for words in FOLDERS {
        let Ended { code, stderr: said, .. } = ended(&mut verb(&inputs, words, "link", &[]));
        // `record` finds no code in `true`, and so has nothing to write there.
        assert!(code != Some(0) || words.starts_with("record "), "{words}: {said}");
        let made = fs::read_dir(&roots).expect("a folder").count();
        assert_eq!(made, 0, "{words}: {said}");
    }
}
