//! Profiles that are divided: requests of OTLP, and files of pprof.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use profile_push::ProfileBody;

/// Each sample of a longer one would be a request, with all the strings that it refers to.
const LONGEST: usize = 4096;

/// Two bytes say what the rest is, and the longest part that is wanted, in 256ths of the whole.
pub fn run(input: &[u8]) {
    let Some(([kind, share], content)) = input.split_first_chunk::<2>() else { return };
    if content.len() > LONGEST {
        return;
    }
    let body = if kind & 1 == 0 {
        ProfileBody::otlp(content)
    } else {
        ProfileBody::pyroscope(&gzip(content), &[("service_name".to_owned(), "app".to_owned())])
    };
    let whole = body.unpacked_length().expect("it was packed here");
    assert_eq!(whole, content.len() as u64);
    let longest = whole * u64::from(*share) / 256;
    let Ok(samples) = samples(&body) else { return };
    let parts = body.divided(longest).expect("it can be divided once more");
    assert!(!parts.is_empty());
    let sum = parts.iter().map(|part| {
        let length = part.unpacked_length().expect("a part is valid");
        let samples = self::samples(part).expect("a part can be divided");
        assert!(length <= longest || samples == 1 || parts.len() == 1, "{length} of {longest}");
        samples
    });
    assert_eq!(sum.sum::<usize>(), samples);
}

/// Into how many parts it can be divided: as many as it has samples.
fn samples(body: &ProfileBody) -> Result<usize, profile_push::DivideError> {
    Ok(body.clone().divided(0)?.len())
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}
