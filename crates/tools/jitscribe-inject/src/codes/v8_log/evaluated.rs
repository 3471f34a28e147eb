//! Names of functions in text that was passed to `eval`.
//!
//! V8 puts the name of a function's script into the function's name, and such text has none: `JS:*f :5:15`. The text may give itself a URL, which the lines
//! of its code have. The modules of webpack do so if they are compiled by `eval`.

use code_index::FunctionName;

/// The name of a code with the URL of its script, in `buffer`; `None` if the name has a file, or no place to put one.
pub fn with_url<'b>(name: &[u8], url: &str, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    let read = FunctionName::of(name);
    if !read.file.is_empty() || read.line == 0 || read.column == 0 {
        return None;
    }
    let place = format!(":{}:{}", read.line, read.column);
    let before = name.strip_suffix(place.as_bytes()).filter(|before| before.ends_with(b" "))?;
    buffer.clear();
    for part in [before, url.as_bytes(), place.as_bytes()] {
        buffer.extend_from_slice(part);
    }
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_file_get_one() {
        let mut buffer = Vec::new();
        let mut of = |name: &str| {
            let name = with_url(name.as_bytes(), "webpack-internal:///./a.js", &mut buffer);
            name.map(|name| String::from_utf8(name.to_vec()).unwrap())
        };
        let placed = |name: &str| Some(format!("{name}webpack-internal:///./a.js:5:15"));
        for name in ["JS:*f ", "JS:~get x ", "JS:^ "] {
            assert_eq!(of(&format!("{name}:5:15")), placed(name));
        }
        for other in ["JS:*f a.js:5:15", "JS:*f", "f :5:15", "JS:*f :5", "TRACE_12::(string):7"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
