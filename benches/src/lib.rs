//! Workloads of the benchmarks.
