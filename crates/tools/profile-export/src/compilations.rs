//! The compilations of each process, for formats that show them as events.

use profile::{Code, ProcessId, Profile};

/// Codes that were compiled at a known time, by process and time.
#[derive(Debug)]
pub struct Compilations<'p> {
    of_process: Vec<Vec<(u64, &'p Code)>>,
}

impl<'p> Compilations<'p> {
    /// Of all processes.
    pub fn of(profile: &'p Profile) -> Self {
        let mut of_process = vec![Vec::new(); profile.processes().len()];
        for code in profile.codes() {
            let codes = code.process.and_then(|process| of_process.get_mut(process.index()));
            if let (Some(codes), Some(loaded)) = (codes, code.loaded) {
                codes.push((loaded, code));
            }
        }
        for codes in &mut of_process {
            codes.sort_by_key(|(loaded, _)| *loaded);
        }
        Self { of_process }
    }

    /// Of a process: each with its time.
    pub fn of_process(&self, process: ProcessId) -> &[(u64, &'p Code)] {
        self.of_process.get(process.index()).map(Vec::as_slice).unwrap_or_default()
    }
}
