//! What the benchmarks are made of: one workload from a seed, floors written by hand, rivals, and the rounds in which
//! they run beside annals. Nothing here is part of the product.
//!
//! | module | what |
//! |---|---|
//! | [`workload`] | the events of a seed, the same ones on any machine |
//! | [`stored`] | the workload as a store on disk, made once |
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends with the reason")]
#![expect(
    clippy::disallowed_methods,
    reason = "floors and rivals go to the disk without the engine"
)]

pub mod stored;
pub mod workload;
