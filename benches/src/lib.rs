//! What the benchmarks are made of: one workload from a seed, floors written by hand, rivals, and the rounds in which
//! they run beside annals. Nothing here is part of the product.
//!
//! | module | what |
//! |---|---|
//! | [`workload`] | the events of a seed, the same ones on any machine |
//! | [`stored`] | the workload as a store on disk, made once |
//! | [`load`] | callers that append for a while |
//! | [`children`], [`program`] | processes of their own: this program again, and annals itself |
//! | [`floors`] | the least that the machine must do |
//! | [`rivals`] | other stores, behind the feature `rivals` |
//! | [`sections`] | what is compared with what |
//! | [`rounds`] | interleaved rounds, and their medians |
//! | [`report`], [`machine`] | what was found, where, as Markdown |
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends with the reason")]
#![expect(
    clippy::disallowed_methods,
    reason = "floors and rivals go to the disk without the engine"
)]

pub mod children;
pub mod floors;
pub mod load;
pub mod machine;
pub mod program;
pub mod report;
pub mod rivals;
pub mod rounds;
pub mod sections;
pub mod stored;
pub mod workload;
