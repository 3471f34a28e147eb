//! `jitscribe agent --images`: images of what was asked for, within a bound, whatever happens to the agent and the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::agent::{Agent, free_address, function, metric};
use crate::common::announcer::{bytes, started_with_bytes};
use crate::common::images::{Image, code_at, image};
use crate::common::{Bench, JITSCRIBE, expect_tool, files, finish, interrupt};
use serde_json::json;
use test_privilege::{needs, unshare};

/// A folder of images that the agent creates. Root's agent, which becomes another user, must be let in.
fn folder(bench: &Bench) -> PathBuf {
    let above = bench.path("state");
    fs::create_dir_all(&above).expect("a folder");
    bench.open();
    above.join("images")
}

/// Options for a folder, and a limit in MiB.
fn options<'a>(folder: &'a Path, limit: &'a str) -> [&'a str; 4] {
    ["--images", folder.to_str().expect("UTF-8"), "--images-limit", limit]
}

/// Fails if a tool has something to say about an image.
fn expect_valid(path: &Path) {
    needs!(Elflint);
    let done = finish(Command::new("eu-elflint").arg("--gnu-ld").arg(path));
    assert_eq!(done.stdout, "No errors\n", "{path:?}");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused() {
    let bench = Bench::with("file", "");
    let folder = folder(&bench);
    let refused = |words: &[&str]| {
        let refused = bench.ask(&[&["agent", "--socket", "other.sock"], words].concat());
        assert_ne!(refused.code, 0);
        refused
    };
    refused(&options(&folder, "0")).says("--images-limit takes");
    // One agent writes there.
    let agent = Agent::start(&bench, &options(&folder, "16"));
    agent.processes();
    refused(&options(&folder, "16")).says("another agent keeps images in");
    drop(agent);
    // A file is no folder.
    refused(&options(&bench.path("file"), "16")).says("file");
    needs!(OtherUsers);
    // What was there before keeps its owner: who starts the agent must give it away.
    let own = bench.path("own");
    fs::create_dir_all(own.join(".build-id")).expect("folders");
    refused(&options(&own, "16")).says("runs as user 65534").says("chown -R 65534");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn what_is_asked_for_has_an_image_over_restarts() {
        let bench = Bench::new();
        let folder = folder(&bench);
        let mut process = started_with_bytes();
        process.load(28672, 64, "first");
        process.load(32784, 64, "second");
        let mut known = Vec::new();
        for _ in 0..2 {
            let mut agent = Agent::start(&bench, &options(&folder, "16"));
            let first = image(&agent, process.pid(), 28674);
            assert_eq!(first.address, 0x1000);
            let second = image(&agent, process.pid(), 32784);
            assert_eq!(second.address, 0x1010);
            let content = second.read(&folder);
            assert_eq!(content[0x1010..][..64], bytes(8, 64));
            let mode = fs::metadata(second.path(&folder)).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o644, "debuginfod runs as another user");
            first.read(&folder);
            // Only what was asked for, the same after a restart.
            known.push([first, second]);
            assert_eq!(files(&folder).len(), 2);
            interrupt(agent.pid());
            assert_eq!(agent.running.code(), 0);
        }
        assert_eq!(known[0], known[1]);
        // As the command shows it.
        let agent = Agent::start(&bench, &options(&folder, "16"));
        agent.wait_for(process.pid());
        let words = format!("agent ask {} 0x7002 --socket agent.sock", process.pid());
        let shown = bench.ask(&words).stdout;
        let line = format!("    image {} has it at 0x1000", known[0][0].build_id);
        assert_eq!(shown.lines().nth(2), Some(&*line), "{shown}");
    }

    #[test]
    fn the_folder_is_bounded_and_other_files_stay() {
        let bench = Bench::new();
        let folder = folder(&bench);
        let mut process = started_with_bytes();
        let address = free_address();
        let mut words = options(&folder, "2").to_vec();
        words.extend(["--metrics", &address, "--interval", "0.05"]);
        let agent = Agent::start(&bench, &words);
        // It answers when it has opened the folder.
        agent.processes();
        // Files that look like ours, and are not.
        let by_id = folder.join(".build-id");
        let name = format!("{}.debug", "1".repeat(38));
        let others = ["ab/README", &format!("ab/{name}"), "notes", "cd/short.debug"];
        for other in others {
            let path = by_id.join(other);
            let above = path.parent().expect("a folder");
            fs::create_dir_all(above).expect("a folder");
            if other.ends_with(&name) {
                fs::copy("/bin/true", &path).expect("copied");
            } else {
                fs::write(&path, vec![b'x'; 4 << 20]).expect("written");
            }
            // As if the agent's user had put it there.
            if rustix::process::geteuid().is_root() {
                for path in [above, &path] {
                    std::os::unix::fs::chown(path, Some(65534), None).expect("given away");
                }
            }
        }
        // Root's code may have all of it, that of another user a quarter.
        let size = |folder: &Path| -> u64 {
            let all = files(folder)
                .into_iter()
                .filter(|name| !others.iter().any(|other| name.ends_with(other)));
            let size = |name: String| fs::metadata(folder.join(name)).map_or(0, |it| it.len());
            all.map(size).sum()
        };
        let mut last = None;
        for n in 1..400_u64 {
            process.load(n << 12, 3000, &format!("code {n}"));
            let image = image(&agent, process.pid(), n << 12);
            if n % 50 == 0 {
                image.read(&folder);
                assert!(size(&folder) <= 2 << 20);
            }
            last = Some(image);
        }
        let last = last.expect("an image");
        last.read(&folder);
        assert!(metric(&address, "jitscribe_agent_images_removed_total") > 50.0);
        while metric(&address, "jitscribe_agent_images_written_total") < 399.0 {
            std::thread::yield_now();
        }
        assert!(metric(&address, "jitscribe_agent_image_bytes") <= f64::from(2 << 20));
        assert_eq!(metric(&address, "jitscribe_agent_failed_images_total"), 0.0);
        // A smaller limit after a restart applies to what is there, and to nothing else.
        drop(agent);
        let agent = Agent::start(&bench, &options(&folder, "1"));
        // It removes before it writes.
        image(&agent, process.pid(), 4096).read(&folder);
        assert!(size(&folder) <= 1 << 20);
        assert!(last.path(&folder).exists(), "the newest");
        for other in others {
            assert!(by_id.join(other).exists(), "{other}");
        }
    }

    /// Killed at each step of writing an image.
    #[test]
    fn a_killed_agent_leaves_no_half_image() {
        expect_tool("strace");
        let bench = Bench::new();
        let folder = folder(&bench);
        let mut process = started_with_bytes();
        process.load(4096, 64, "code");
        let by_id = folder.join(".build-id");
        let part = by_id.join("jitscribe-image.part");
        // It creates the folder before it answers.
        Agent::start(&bench, &options(&folder, "16")).processes();
        let mut left = Vec::new();
        for call in
            ["pwrite64:signal=KILL:when=1", "pwrite64:signal=KILL:when=2", "renameat2:signal=KILL"]
        {
            let mut command = bench.command(&format!("strace -f -o /dev/null -e inject={call}"));
            command.arg("-P").arg(&part).arg("-P").arg(&by_id);
            command.args([JITSCRIBE, "agent", "-q"]).args(options(&folder, "16"));
            let mut agent = Agent::by(&bench, command);
            agent.wait_for(process.pid());
            // It may be killed before it has answered.
            let asked = json!([{"pid": process.pid(), "address": 4096}]);
            let request = json!({"version": 1, "ask": {"resolve": asked}});
            let _answer = crate::common::agent::send(&agent.socket, &request);
            agent.running.code();
            assert_eq!(files(&folder), [".build-id/jitscribe-image.part"], "{call}");
            left.push(fs::read(&part).expect("what was written"));
        }
        // The next one removes it, and writes the image.
        let agent = Agent::start(&bench, &options(&folder, "16"));
        let whole = image(&agent, process.pid(), 4096).read(&folder);
        assert_eq!(files(&folder).len(), 1);
        for part in &left {
            assert!(!part.starts_with(b"\x7fELF") || *part == whole, "half an image");
        }
        assert!(!left[0].starts_with(b"\x7fELF"), "it was killed too late");
    }

    #[test]
    fn a_full_disk_stops_images_and_nothing_else() {
        needs!(Mounts);
        expect_tool("unshare");
        let bench = Bench::new();
        let disk = folder(&bench);
        fs::create_dir_all(&disk).expect("a folder");
        let mut process = started_with_bytes();
        let mut command = unshare();
        // Of the tmpfs there is nothing outside of the namespace.
        let script = "mount -t tmpfs -o size=256k,mode=0755 none \"$0\" && exec \"$@\"";
        command.args(["--mount", "sh", "-c", script]).arg(&disk);
        command.args([JITSCRIBE, "agent", "-q"]).args(options(&disk, "64"));
        if !rustix::process::geteuid().is_root() {
            command.args(["--run-as", "0"]);
        }
        let agent = Agent::by(&bench, command);
        let root = PathBuf::from(format!("/proc/{}/root", agent.pid()));
        let inside = root.join(disk.strip_prefix("/").expect("an absolute path"));
        let mut images: Vec<Image> = Vec::new();
        let mut without = 0;
        let mut n = 0;
        // Until images stop, and a while longer.
        while without < 20 {
            n += 1;
            process.load(n << 12, 3000, &format!("code {n}"));
            let answer = code_at(&agent, process.pid(), n << 12);
            assert_eq!(*function(&answer), format!("code {n}"));
            match Image::of(&answer) {
                Some(image) => {
                    let path = image.path(&inside);
                    assert!(path.exists(), "{path:?} is not there");
                    images.push(image);
                }
                None => without += 1,
            }
            assert!(n < 100_000, "images never stop");
        }
        // What was written is whole, and nothing else is there.
        let there = files(&inside);
        assert!(there.len() > 10, "{there:?}");
        for name in &there {
            let image = images.iter().find(|image| image.path(Path::new("")).ends_with(name));
            let image = image.unwrap_or_else(|| panic!("{name} is no image that was answered"));
            let content = fs::read(inside.join(name)).expect("read");
            let at = usize::try_from(image.address).expect("small");
            assert_eq!(content[at], 0x6a, "{name}");
            expect_valid(&inside.join(name));
        }
        let said = agent.said();
        assert_eq!(said.matches("images cannot be written").count(), 1, "{said}");
        assert!(
            said.contains("No space left on device") && said.contains("--images-limit"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
