//! The target `webhook` of `annals_tests::fuzz`, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| annals_tests::fuzz::webhook(bytes));
