//! The reader of journals and the taking out of secrets, for who has a nightly compiler.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzz::check_journal(bytes);
    fuzz::check_redaction(bytes);
});
