//! Workloads for the measurements.
