//! How the tool names its collector, for processes of this size.

use std::ffi::CStr;

/// The variable with the path of the collector.
pub(crate) const VARIABLE: &CStr = if cfg!(target_pointer_width = "64") {
    c"INTEL_JIT_PROFILER64"
} else {
    c"INTEL_JIT_PROFILER32"
};
