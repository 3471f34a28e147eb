//! Against what a hostile process may answer in the place of an inspector.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proptest::prelude::*;

use super::http::Head;
use super::*;
use crate::foreign::Limit;

/// Much more than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Within which what never answers is given up.
const SHORT: Duration = Duration::from_millis(200);

/// Has a thread serve connections, one after the other, until one is refused by `serve`. It ends with the test.
fn served(mut serve: impl FnMut(usize, TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("its address");
    let run = move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            serve(number, stream);
        }
    };
    let _: JoinHandle<()> = thread::spawn(run);
    address
}

/// The head of a request.
fn request(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        head.extend(byte);
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn list(stream: &mut TcpStream, body: &str) {
    let length = body.len();
    let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
}

/// A process that lists this target, upgrades the connection, and does with it what `then` does.
fn upgraded(then: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    served(move |number, mut stream| {
        let head = request(&mut stream);
        if number == 0 {
            assert!(head.starts_with("GET /json/list HTTP/1.1\r\n"), "{head}");
            list(&mut stream, r#"[{"id":"0a-1"}]"#);
        } else {
            assert!(head.starts_with("GET /0a-1 HTTP/1.1\r\n"), "{head}");
            let _ = stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
            then(stream);
        }
    })
}

/// A process that answers each request with these messages.
fn answering(messages: &[&'static str]) -> SocketAddr {
    let messages = messages.to_vec();
    upgraded(move |stream| {
        let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
        while socket.read().is_ok() {
            for message in &messages {
                let _ = socket.send(Message::text(*message));
            }
        }
    })
}

fn evaluate(address: SocketAddr, time: Duration) -> Result<Option<String>, Failure> {
    let wait = Wait::new(Limit::of(time), None, None);
    Inspector::connect(address, &wait)?.evaluate("1")
}

fn refused(address: SocketAddr) -> String {
    match evaluate(address, LONG) {
        Err(Failure::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_string_is_the_answer() {
    let undefined = r#"{"id":1,"result":{"result":{"type":"undefined"}}}"#;
    let address = answering(&[r#"{"method":"Debugger.paused"}"#, r#"{"id":7}"#, undefined]);
    assert_eq!(evaluate(address, LONG).expect("an answer"), None);
    let address =
        answering(&[r#"{"id":1,"result":{"result":{"type":"string","value":"a\u001b\nb"}}}"#]);
    assert_eq!(evaluate(address, LONG).expect("an answer").as_deref(), Some("a\\u{1b}"));
}

#[test]
fn errors_are_passed_on_as_plain_text() {
    let thrown = r#"{"id":1,"result":{"exceptionDetails":{"text":"Uncaught","exception":{"description":"Error: no\u0007 addons\n at x"}}}}"#;
    assert_eq!(refused(answering(&[thrown])), "Error: no\\u{7} addons");
    assert_eq!(refused(answering(&[r#"{"id":1,"error":{"message":"no"}}"#])), "no");
    assert_eq!(refused(answering(&[r#"{"id":1,"error":[]}"#])), "it failed");
}

#[test]
fn what_is_no_answer_is_refused() {
    for message in ["", "[", r#"{"id":1}"#] {
        assert_eq!(refused(answering(&[message])), "its answer is not that of an inspector");
    }
    // A frame that is masked, one of an unknown kind, and one that is longer than all memory.
    for bytes in [&b"\x81\x81abcdx"[..], b"\x8f\x00", b"\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"] {
        let why = refused(upgraded(move |mut stream| drop(stream.write_all(bytes))));
        assert!(why.contains("not that of an inspector") || why.contains("64 KiB"), "{why}");
    }
}

#[test]
fn answers_have_an_end() {
    let large = refused(upgraded(|stream| {
        let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
        let _ = socket.send(Message::text("x".repeat(LONGEST_MESSAGE + 1)));
    }));
    assert_eq!(large, "it sends a message of more than 64 KiB");
    for message in [Message::text("{}"), Message::Ping(vec![0; 100].into())] {
        let endless = refused(upgraded(move |stream| {
            let reader = stream.try_clone().expect("a socket");
            thread::spawn(move || std::io::copy(&mut &reader, &mut std::io::sink()));
            let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
            while socket.send(message.clone()).is_ok() {}
        }));
        assert_eq!(endless, "it sends more than 1024 KiB");
    }
    let head =
        refused(served(|_, mut stream| while stream.write_all(b"HTTP/1.1 200 x").is_ok() {}));
    assert_eq!(head, "its answer is not that of an inspector");
}

#[test]
fn only_an_id_is_taken_from_a_list_of_targets() {
    for body in [
        "",
        "[]",
        "{}",
        "[{}]",
        r#"[{"id":1}]"#,
        r#"[{"id":""}]"#,
        r#"[{"id":"../x"}]"#,
        r#"[{"id":"a\r\nX: y"}]"#,
        r#"[{"webSocketDebuggerUrl":"ws://127.0.0.1:1/a"}]"#,
    ] {
        let address = served(move |number, mut stream| {
            assert_eq!(number, 0);
            request(&mut stream);
            list(&mut stream, body);
        });
        assert_eq!(refused(address), "its answer is not that of an inspector", "{body}");
    }
}

#[test]
fn redirects_are_not_followed() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a socket");
    other.set_nonblocking(true).expect("set");
    let location = format!("http://{}/", other.local_addr().expect("its address"));
    for head in ["HTTP/1.1 302 Found", "HTTP/1.1 101 Switching Protocols"] {
        let location = location.clone();
        let address = served(move |_, mut stream| {
            request(&mut stream);
            let _ = write!(stream, "{head}\r\nLocation: {location}\r\nContent-Length: 2\r\n\r\n[]");
        });
        assert_eq!(refused(address), "its answer is not that of an inspector");
    }
    assert!(other.accept().is_err(), "it was followed");
    let lengths = served(|_, mut stream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
    });
    assert_eq!(refused(lengths), "its answer is not that of an inspector");
}

#[test]
fn what_does_not_answer_is_given_up() {
    let silent = served(|_, stream| std::mem::forget(stream));
    assert!(matches!(evaluate(silent, SHORT), Err(Failure::NotAnswering)));
    let after_upgrade = upgraded(std::mem::forget);
    assert!(matches!(evaluate(after_upgrade, SHORT), Err(Failure::NotAnswering)));
    let closed = served(|_, stream| drop(stream));
    assert!(evaluate(closed, LONG).is_err());
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a socket").local_addr().expect("known");
    assert!(matches!(evaluate(nobody, LONG), Err(Failure::System(_))));
}

proptest! {
    #[test]
    fn any_answer_is_read(head in proptest::collection::vec(any::<u8>(), 0..200), text: String) {
        let _ = Head::parse(&head);
        let answer = json!({ "id": 1, "result": { "result": { "value": text } } });
        let value = value(&answer).expect("a value").expect("a string");
        prop_assert!(!value.contains(char::is_control) && value.len() < 4 << 10);
    }
}
