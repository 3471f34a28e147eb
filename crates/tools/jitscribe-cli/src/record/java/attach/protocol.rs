//! The encoding of HotSpot's attach protocol, version 1, which OpenJDK 8 to 25 accept.
//!
//! A request is the version, a command and always three arguments, each ended by a NUL. The answer is a number, a newline, and
//! text until the JVM closes the connection. This module does no I/O.

use crate::record::agent::{Failure, plain};

/// The longest argument that HotSpot accepts (`AttachOperation::arg_length_max`).
const LONGEST_ARGUMENT: usize = 1024;

/// The longest answer that is read. Answers to our two commands have some hundred bytes, but a process that only looks like a JVM
/// may send data forever.
pub const LONGEST_ANSWER: usize = 64 << 10;

/// The longest text for the number: a sign and ten digits.
const LONGEST_CODE: usize = 11;

/// A request to a JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request(Vec<u8>);

/// The answer of a JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 0 if the JVM did what was requested.
    pub code: i32,
    /// The text that it printed. Not trusted, because the process may not be a JVM.
    pub text: String,
}

/// Collects the bytes of an answer as they arrive.
#[derive(Debug, Default)]
pub struct Incoming(Vec<u8>);

impl Request {
    /// A request for a command of `jcmd`.
    pub fn jcmd(command: &str) -> Result<Self, Failure> {
        Self::new("jcmd", [command, "", ""])
    }

    /// A request to load a native agent from a file, with options.
    pub fn load(library: &str, options: &str) -> Result<Self, Failure> {
        // The second argument means that the first is a path and not the name of a library of the JDK.
        Self::new("load", [library, "true", options])
    }

    fn new(command: &str, arguments: [&str; 3]) -> Result<Self, Failure> {
        let mut bytes = b"1\0".to_vec();
        for word in [command].into_iter().chain(arguments) {
            if word.contains('\0') {
                return Err(Failure::Refused("a JVM accepts no argument with a NUL".into()));
            }
            if word.len() > LONGEST_ARGUMENT {
                return Err(Failure::Refused(format!(
                    "a JVM accepts no argument longer than {LONGEST_ARGUMENT} bytes"
                )));
            }
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        Ok(Self(bytes))
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Incoming {
    /// Appends received bytes.
    ///
    /// # Errors
    /// If the answer becomes longer than [`LONGEST_ANSWER`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > LONGEST_ANSWER.saturating_sub(self.0.len()) {
            return Err(Failure::Refused(format!(
                "its answer is longer than {} KiB",
                LONGEST_ANSWER >> 10
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// Parses the answer after the connection was closed.
    ///
    /// # Errors
    /// If the answer does not begin with a number on a line of its own.
    pub fn finish(self) -> Result<Answer, Failure> {
        if self.0.is_empty() {
            return Err(Failure::Refused("it closed the connection without an answer".into()));
        }
        let no_answer = || Failure::Refused("its answer is not that of a JVM".into());
        let end = self.0.iter().take(LONGEST_CODE + 1).position(|byte| *byte == b'\n');
        let (code, text) =
            self.0.split_at_checked(end.ok_or_else(no_answer)?).ok_or_else(no_answer)?;
        let code = std::str::from_utf8(code).ok().and_then(|code| code.parse().ok());
        let text = text.get(1..).unwrap_or_default();
        Ok(Answer {
            code: code.ok_or_else(no_answer)?,
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

impl Answer {
    /// Whether, according to the answer to [`Request::load`], the agent was loaded.
    pub fn loaded(&self) -> Result<(), Failure> {
        // OpenJDK 8 prints only the agent's return code on the line, later versions print words before it.
        let first = self.lines().next().unwrap_or_default();
        let code = first.strip_prefix("return code:").unwrap_or(first).trim().parse::<i32>();
        match code {
            Ok(0) if self.code == 0 => Ok(()),
            Ok(code) if self.code == 0 => {
                Err(Failure::Refused(format!("the agent failed (return code {code})")))
            }
            _ => Err(self.refusal()),
        }
    }

    /// Whether, according to its answer, the command succeeded.
    pub fn done(&self) -> Result<(), Failure> {
        if self.code == 0 { Ok(()) } else { Err(self.refusal()) }
    }

    fn refusal(&self) -> Failure {
        // `…: Unknown diagnostic command`.
        if self.text.contains("Unknown diagnostic command") {
            return Failure::Refused(
                "it does not know the command, which OpenJDK has since version 17".into(),
            );
        }
        // The second line says why, if there is one.
        let cause = self.lines().take(2).collect::<Vec<_>>().join(" ");
        if cause.is_empty() {
            return Failure::Refused(format!("it returned only code {}", self.code));
        }
        Failure::Refused(plain(&cause))
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().map(str::trim).filter(|line| !line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(bytes: &[u8]) -> Result<Answer, Failure> {
        let mut incoming = Incoming::default();
        // However it is cut.
        for piece in bytes.chunks(3) {
            incoming.push(piece)?;
        }
        incoming.finish()
    }

    fn cause(result: Result<(), Failure>) -> String {
        result.expect_err("a refusal").to_string()
    }

    #[test]
    fn requests_have_a_version_a_command_and_three_arguments() {
        let perf_map = Request::jcmd("Compiler.perfmap").expect("a request");
        assert_eq!(perf_map.bytes(), b"1\0jcmd\0Compiler.perfmap\0\0\0");
        let load = Request::load("/a b/c=d.so", "hold:/tmp/x").expect("a request");
        assert_eq!(load.bytes(), b"1\0load\0/a b/c=d.so\0true\0hold:/tmp/x\0");
    }

    #[test]
    fn invalid_arguments_are_refused() {
        assert!(Request::load("/a\0stop", "").is_err());
        assert!(Request::load(&"x".repeat(1024), "").is_ok());
        assert!(Request::load(&"x".repeat(1025), "").is_err());
    }

    #[test]
    fn an_agent_is_loaded_if_the_jvm_and_the_agent_report_success() {
        // OpenJDK 8, and later ones.
        for said in ["0\n0\n", "0\nreturn code: 0\n", "0\n\n  return code: 0"] {
            answer(said.as_bytes()).expect("an answer").loaded().expect(said);
        }
        let refused = answer(b"0\nreturn code: 3\n").expect("an answer");
        assert_eq!(cause(refused.loaded()), "the agent failed (return code 3)");
        let missing = answer(b"0\n/x.so was not loaded.\n/x.so: cannot open shared object file\n");
        let missing = cause(missing.expect("an answer").loaded());
        assert_eq!(missing, "/x.so was not loaded. /x.so: cannot open shared object file");
        let old = answer(b"-1\n").expect("an answer");
        assert_eq!(cause(old.loaded()), "it returned only code -1");
        // A code of the agent's counts only where the JVM's own is 0.
        assert!(answer(b"100\nreturn code: 0\n").expect("an answer").loaded().is_err());
    }

    #[test]
    fn an_unknown_command_is_reported() {
        let said = b"-1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n";
        let said = cause(answer(said).expect("an answer").done());
        assert!(said.contains("since version 17"), "{said}");
        answer(b"0\n").expect("an answer").done().expect("done");
    }

    #[test]
    fn invalid_answers_are_refused() {
        for wrong in ["", "0", "\n", "x\n", "0x\n", "99999999999\n", "00000000000000000\n", " 0\n"]
        {
            assert!(answer(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(answer(b"\xff\n").is_err());
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut incoming = Incoming::default();
        incoming.push(&[b'0'; LONGEST_ANSWER]).expect("it fits");
        assert!(incoming.push(b"0").is_err());
        assert_eq!(incoming.0.len(), LONGEST_ANSWER);
    }

    #[test]
    fn messages_have_no_control_characters() {
        let said = answer(b"1\n\x1b]0;title\x07 it's \"so\" \xff\n").expect("an answer");
        let said = cause(said.done());
        assert_eq!(said, "\\u{1b}]0;title\\u{7} it's \"so\" \u{fffd}");
        let long = answer(&[b"1\n".as_slice(), &[b'x'; 60_000]].concat()).expect("an answer");
        assert!(cause(long.done()).len() < 400);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(answer) = answer(&bytes) {
                let said = answer.loaded().err().map(|failure| failure.to_string());
                prop_assert!(said.is_none_or(|said| !said.contains(char::is_control)));
                let _ = answer.done();
            }
        }

        #[test]
        fn numbers_and_text_round_trip(code: i32, text: String) {
            let answer = answer(format!("{code}\n{text}").as_bytes()).expect("an answer");
            prop_assert_eq!(answer, Answer { code, text });
        }
    }
}
