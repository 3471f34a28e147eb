//! Requests and answers: one JSON object in each line.

use serde::{Deserialize, Serialize};

/// The version of the protocol. A request of another version is refused.
pub const VERSION: u32 = 1;

/// The most bytes of a line with a request.
pub const LONGEST_REQUEST: usize = 1 << 20;

/// The most addresses in a request.
pub const MOST_ADDRESSES: usize = 8192;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// Returned with the answer.
    #[serde(default)]
    pub id: u64,
    /// What is asked.
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The code at each of these addresses.
    Resolve(Vec<Address>),
    /// The processes whose code is known.
    Processes,
}

/// An address in a process at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// The process id, as the agent sees it.
    pub pid: u32,
    /// When the process started, in clock ticks since boot: field 22 of `/proc/PID/stat`. Without it, the process that has
    /// this id now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// The address.
    pub address: u64,
    /// The time in nanoseconds of `CLOCK_MONOTONIC`; without it, now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u32,
    /// That of the request; 0 if it could not be read.
    pub id: u64,
    /// The answer.
    #[serde(flatten)]
    pub content: Content,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// What is at each address, in the order of the request.
    Resolved(Vec<Resolved>),
    /// The processes that the peer may ask about.
    Processes(Vec<ProcessInfo>),
    /// Why there is no answer.
    Error(String),
}

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    /// A code.
    Code(Box<ResolvedCode>),
    /// Why there is none.
    Unknown(Unknown),
}

/// Why nothing is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// There is no such process, it has no JIT-compiled code that the agent knows, or the peer may not ask about it.
    Process,
    /// No known code was there at this time.
    Code,
    /// There was a code, but its description is gone, or too large for this answer: ask about fewer addresses at a time.
    Description,
}

/// A code at an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedCode {
    /// The functions at the address, the innermost first. The last one is the code's own.
    pub frames: Vec<Frame>,
    /// The code's name as its runtime wrote it, of which the name, the place and the tier of the code's own function may be parts: `JS:*f /a.js:1:2`.
    /// Empty in answers of an agent that does not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// Address of the code's first byte.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was loaded, in nanoseconds of `CLOCK_MONOTONIC`, if its source has such times: a perf map has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<u64>,
    /// When it was unloaded, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unloaded: Option<u64>,
    /// What it is to its runtime.
    pub kind: String,
    /// The compiler's tier, if the runtime names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// How many codes of this name the process has loaded up to this one, as far as they are known.
    pub generation: u64,
    /// Its image, if one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImagePlace>,
}

/// Where a code is in an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagePlace {
    /// The build-id of the image, in hexadecimal digits.
    pub build_id: String,
    /// The address of the code's first byte in the image, which is also its offset in the file.
    pub address: u64,
}

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// The file, if it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line from 1; 0 if it is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    /// Whether it was inlined into the next one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inlined: bool,
}

/// A process whose code is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its id, as the agent sees it.
    pub pid: u32,
    /// When it started, as in [`Address::start`].
    pub start: u64,
    /// Its id in its own pid namespace.
    pub inner_pid: u32,
    /// Its user.
    pub user: u32,
    /// The id of its container, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Its sources of code.
    pub sources: Vec<SourceInfo>,
    /// Whether it has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ended: bool,
}

/// A source of code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// What it is: `code-log`, `jitdump` or `perf-map`.
    pub kind: String,
    /// Number of codes in it.
    pub codes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(is: &bool) -> bool {
    !*is
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// The answer, if it is not a request that this version answers.
    pub fn parse(line: &[u8]) -> Result<Self, Answer> {
        let refused =
            |id, text: String| Err(Answer { version: VERSION, id, content: Content::Error(text) });
        if line.len() > LONGEST_REQUEST {
            return refused(0, format!("a request has at most {LONGEST_REQUEST} bytes"));
        }
        // The version first: a later one may have other fields.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
            #[serde(default)]
            id: u64,
        }
        let (id, request) = match serde_json::from_slice::<Versioned>(line) {
            Ok(Versioned { version: VERSION, id }) => (id, serde_json::from_slice::<Self>(line)),
            Ok(Versioned { version, id }) => {
                return refused(
                    id,
                    format!("version {version} is not supported; this is {VERSION}"),
                );
            }
            Err(error) => (0, Err(error)),
        };
        match request {
            Ok(Self { ask: Ask::Resolve(addresses), .. }) if addresses.len() > MOST_ADDRESSES => {
                refused(id, format!("a request has at most {MOST_ADDRESSES} addresses"))
            }
            Ok(request) => Ok(request),
            Err(error) => refused(id, format!("not a request: {error}")),
        }
    }
}

impl Answer {
    /// The answer to a request.
    #[must_use]
    pub fn new(id: u64, content: Content) -> Self {
        Self { version: VERSION, id, content }
    }

    /// The line, with its end.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_as_the_documentation_has_them() {
        let line = br#"{"version":1,"id":7,"ask":{"resolve":[{"pid":4711,"start":99,"address":4096,"time":5},{"pid":1,"address":2}]}}"#;
        let request = Request::parse(line).unwrap();
        let Ask::Resolve(addresses) = &request.ask else { panic!("{request:?}") };
        assert_eq!(
            addresses[0],
            Address { pid: 4711, start: Some(99), address: 4096, time: Some(5) }
        );
        assert_eq!((addresses[1].start, addresses[1].time), (None, None));
        assert_eq!(serde_json::to_vec(&request).unwrap(), line);
        let answer = Answer::new(7, Content::Resolved(vec![Resolved::Unknown(Unknown::Process)]));
        assert_eq!(
            answer.line(),
            b"{\"version\":1,\"id\":7,\"resolved\":[{\"unknown\":\"process\"}]}\n"
        );
    }

    #[test]
    fn what_is_no_request_is_answered() {
        let error = |line: &[u8]| match Request::parse(line).unwrap_err() {
            Answer { id, content: Content::Error(text), .. } => (id, text),
            other => panic!("{other:?}"),
        };
        assert!(error(b"").1.starts_with("not a request"));
        assert!(error(br#"{"version":1,"id":3,"ask":"all"}"#).1.contains("all"));
        assert_eq!(error(br#"{"version":1,"id":3,"ask":"processes","more":1}"#).0, 3);
        // Of a later version, not even the question need be known.
        let (id, text) = error(br#"{"version":2,"id":9,"what":[]}"#);
        assert_eq!((id, text.as_str()), (9, "version 2 is not supported; this is 1"));
        let address = r#"{"pid":1,"address":2}"#;
        let many = vec![address; MOST_ADDRESSES + 1].join(",");
        let (id, text) =
            error(format!(r#"{{"version":1,"id":4,"ask":{{"resolve":[{many}]}}}}"#).as_bytes());
        assert_eq!((id, text), (4, format!("a request has at most {MOST_ADDRESSES} addresses")));
        assert!(error(&vec![b' '; LONGEST_REQUEST + 1]).1.contains("bytes"));
    }
}
