//! The target of `cargo-fuzz`, for who has a nightly compiler: the first byte chooses the dialect, or the
//! variable `DIALECT` does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph::transcript::{DIALECTS, dialect};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let named = std::env::var("DIALECT").ok().and_then(|name| dialect(&name));
    fuzz::check_adapter(named.unwrap_or(&DIALECTS[usize::from(*first) % DIALECTS.len()]), rest);
});
