//! Inclusive samples of functions in a recording with copies of stacks. The callers are known only once the stacks are unwound, which the
//! new recording's profile has done.

use std::collections::HashMap;

use jitscribe_inject::Report;
use profile::{FunctionId, Profile, Totals};

/// Adds to the functions of a report how many samples have them on the stack.
pub fn add(report: &mut Report, profile: &Profile) {
    let totals = Totals::all(profile);
    let codes = profile.codes().iter().filter(|code| code.process.is_some());
    let functions: HashMap<&[u8], FunctionId> =
        codes.map(|code| (profile.text(code.symbol), code.function)).collect();
    for top in &mut report.top {
        if let Some(&function) = functions.get(top.symbol.as_slice()) {
            top.inclusive = Some(totals.of_function(function).total);
        }
    }
}
