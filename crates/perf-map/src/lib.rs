//! Perf maps (perf-PID.map): reader, writer and checker.
