#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| toolgate_fuzz::url(input));

#[cfg(not(fuzzing))]
fn main() {}
