//! `record -p PID --inspect`: the installed node, which was started without flags for V8.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use end_to_end::jitscribe::{interruptible_jitscribe, node_addon};
use end_to_end::live::without_tag;
use end_to_end::record::{Record, Recorded};
use end_to_end::running::{Running, Signal, send, wait_for};
use end_to_end::runtimes::script;
use end_to_end::tool::tool;
use serde_json::Value;
use test_privilege::needs;

/// A port that was free just now. The usual one serves one process at a time, and tests run at once.
fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("its address").port()
}

fn is_listening(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// The server, ready, with these options and arguments. What it prints on standard error goes into a pipe.
fn server(options: &[&str], arguments: &[&str]) -> Running {
    let mut node = tool("node");
    node.args(options).arg(script("inspected.js")).args(arguments);
    let mut server = start(&mut node);
    server.wait_for_line("ready");
    server
}

fn start(command: &mut Command) -> Running {
    Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn port_option(port: u16) -> String {
    format!("--inspect-port={port}")
}

/// Whether a process has mapped the addon.
fn has_addon(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    maps.contains("libjitscribe_node.so")
}

/// Whether a process has the pipe of a recorder open.
fn has_recorder(pid: u32) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let links = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.map(|link| link.display().to_string()).any(|link| link.contains("/.jitscribe-"))
}

/// Records it. When the addon is there, it gets a line.
fn record(server: &mut Running, options: &[&str]) -> Recorded {
    let pid = server.pid();
    let of_it = ["-p", &pid.to_string(), "--inspect", "--duration", "3", "-F", "999"];
    Record::new(&[&of_it, options].concat()).processes_while(|| {
        let instead = || "the recorder's pipe is open".to_owned();
        wait_for(instead, || has_recorder(pid).then_some(()));
        server.write("go\n");
        server.wait_for_line("heard");
    })
}

/// The functions of the workload that the recording shows, and that at least 95 % of the samples in jitted code have a name.
fn functions(recorded: &Recorded) -> BTreeSet<&str> {
    let samples = &recorded.report["samples"];
    let count = |name: &str| samples[name].as_u64().unwrap_or_else(|| panic!("{samples}"));
    let named = count("named");
    let jitted = named + count("inferred") + count("unnamed");
    assert!(jitted > 20 && named * 100 >= jitted * 95, "{samples}, {}", recorded.said);
    let rows = recorded.report["top"].as_array().expect("a list");
    rows.iter().filter_map(|row: &Value| row["name"].as_str()).collect()
}

/// The names of functions without the tier, as perf shows them.
fn names(recorded: &Recorded) -> BTreeSet<String> {
    let samples = recorded.samples();
    let names = samples.iter().filter_map(|sample| Some(sample.symbol.as_ref()?.name.clone()));
    names.filter_map(|name| without_tier(&name)).collect()
}

fn without_tier(name: &str) -> Option<String> {
    let name = without_tag(name)?;
    Some(name.trim_start_matches(['o', '~', '^', '+', '*', '\'']).to_owned())
}

#[test]
fn a_server_without_flags_is_named_as_with_them_and_goes_on() {
    needs!(Perf);
    let port = free_port();
    let mut server = server(&[&port_option(port)], &[]);
    let recorded = record(&mut server, &[]);
    assert!(recorded.said.contains("is closed again"), "{}", recorded.said);
    let found = functions(&recorded);
    assert!(found.contains("before") && found.contains("after"), "{found:?}");
    assert!(!is_listening(port) && !has_recorder(server.pid()));
    // As the server with the flag calls them.
    let mut with_flag = Command::new("node");
    with_flag.args(["--perf-basic-prof", &script("inspected.js")]);
    // V8 leaves a log there.
    with_flag.current_dir(recorded.folder());
    let mut other = start(&mut with_flag);
    other.wait_for_line("ready");
    other.write("go\n");
    let map = format!("/tmp/perf-{}.map", other.pid());
    let read = || fs::read_to_string(&map).unwrap_or_default();
    wait_for(read, || read().contains("*after ").then_some(()));
    let expected: BTreeSet<_> =
        read().lines().filter_map(|line| without_tier(line.splitn(3, ' ').nth(2)?)).collect();
    drop(other);
    fs::remove_file(&map).expect("removed");
    let names = names(&recorded);
    let ours: BTreeSet<_> = names.iter().filter(|name| name.contains("inspected.js")).collect();
    assert!(ours.len() > 1 && ours.iter().all(|name| expected.contains(*name)), "{ours:?}");
    // It goes on, and can be recorded again.
    let again = record(&mut server, &[]);
    assert!(functions(&again).contains("after"));
    assert!(!is_listening(port));
}

#[test]
fn worker_threads_are_named_too() {
    needs!(Perf);
    let port = free_port();
    let mut server = server(&[&port_option(port)], &["threads"]);
    let recorded = record(&mut server, &[]);
    let found = functions(&recorded);
    assert!(found.contains("before") && found.contains("after"), "{found:?}");
    assert!(!is_listening(port));
    server.write("x\n");
    server.wait_for_line("heard");
}

#[test]
fn nothing_is_done_to_a_process_without_the_option() {
    needs!(Perf);
    let port = free_port();
    let mut server = server(&[&port_option(port)], &[]);
    let pid = server.pid().to_string();
    Record::new(&["-p", &pid, "--duration", "1", "--allow-empty"]).processes();
    assert!(!is_listening(port) && !has_addon(server.pid()));
    server.write("x\n");
    server.wait_for_line("heard");
    send(server.pid(), Signal::TERM);
    assert_eq!(stderr_of(server), "");
}

/// What a server that has been ended printed on standard error.
fn stderr_of(server: Running) -> String {
    String::from_utf8(server.ended().stderr).expect("text")
}

#[test]
fn what_is_no_node_gets_no_signal() {
    needs!(Perf);
    let mut shell = Command::new("sh");
    shell.args(["-c", "echo ready; while :; do :; done"]);
    let mut shell = start(&mut shell);
    shell.wait_for_line("ready");
    let pid = shell.pid().to_string();
    let recorded = Record::new(&["-p", &pid, "--inspect", "--duration", "1"]).processes();
    assert!(recorded.said.contains("is neither node nor Python"), "{}", recorded.said);
    assert!(Path::new("/proc").join(&pid).join("exe").read_link().is_ok(), "it was killed");
}

#[test]
fn a_port_of_another_process_is_not_touched() {
    needs!(Perf);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    taken.set_nonblocking(true).expect("set");
    let port = taken.local_addr().expect("its address").port();
    let server = server(&[&port_option(port)], &[]);
    let pid = server.pid().to_string();
    let options = ["-p", &pid, "--inspect", "--duration", "1", "--allow-empty"];
    let recorded = Record::new(&options).processes();
    let expected = format!("another process listens on port {port}");
    assert!(recorded.said.contains(&expected), "{}", recorded.said);
    assert!(taken.accept().is_err(), "it was connected to");
    assert!(!has_addon(server.pid()));
    send(server.pid(), Signal::TERM);
    assert_eq!(stderr_of(server), "");
}

#[test]
fn an_inspector_that_is_open_stays_open() {
    needs!(Perf);
    let port = free_port();
    let mut server = server(&[&format!("--inspect={port}")], &[]);
    let recorded = record(&mut server, &[]);
    assert!(recorded.said.contains("stays open"), "{}", recorded.said);
    assert!(functions(&recorded).contains("after"));
    assert!(is_listening(port));
}

#[test]
fn an_addon_stops_however_the_recording_ends() {
    needs!(Perf);
    let port = free_port();
    let server = server(&[&port_option(port)], &[]);
    let folder = tempfile::tempdir().expect("a folder");
    for signal in [Signal::INT, Signal::KILL] {
        let mut record = interruptible_jitscribe();
        record.args(["record", "-f", "--inspect", "-p", &server.pid().to_string()]);
        record.env("JITSCRIBE_NODE_ADDON", node_addon()).current_dir(&folder);
        let recording = Running::start(record.stderr(Stdio::null()).stdout(Stdio::null()));
        let is_there = |is| move |pid| (has_recorder(pid) == is).then_some(());
        let instead = || format!("the pipe of a recorder that gets {signal:?}");
        wait_for(instead, || is_there(true)(server.pid()));
        // Not while the inspector is open, as nothing closes it after a kill.
        wait_for(instead, || (!is_listening(port)).then_some(()));
        send(recording.pid(), signal);
        recording.code();
        wait_for(instead, || is_there(false)(server.pid()));
        assert!(!is_listening(port));
    }
}

/// Electron and others that contain node are not tested, so they are left alone; so is a node that does not handle the signal.
#[test]
fn a_node_without_the_signal_is_left_alone() {
    needs!(Perf);
    // A program of this name that runs a shell.
    let folder = tempfile::tempdir().expect("a folder");
    let node = folder.path().join("node");
    fs::copy("/bin/sh", &node).expect("copied");
    let mut false_node = Command::new(&node);
    false_node.args(["-c", "echo ready; while :; do :; done"]);
    let mut false_node = start(&mut false_node);
    false_node.wait_for_line("ready");
    let pid = false_node.pid().to_string();
    let recorded = Record::new(&["-p", &pid, "--inspect", "--duration", "1"]).processes();
    assert!(recorded.said.contains("SIGUSR1, which would end it"), "{}", recorded.said);
    assert!(Path::new("/proc").join(&pid).join("exe").read_link().is_ok(), "it was killed");
}
