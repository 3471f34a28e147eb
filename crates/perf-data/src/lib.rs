//! perf.data recordings as a stream of events, in and out.
