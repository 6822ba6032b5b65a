//! What the command line says, word for word.

#![allow(missing_docs)]

#[test]
fn the_command_line_says_what_its_documents_say() {
    trycmd::TestCases::new()
        .case("tests/cli/*.trycmd")
        .register_bin("sh", std::path::Path::new("/bin/sh"))
        .env("RALPH", env!("CARGO_BIN_EXE_ralph"))
        .env("COLUMNS", "100")
        .env("TZ", "UTC")
        .env("RALPH_DEMO_PAUSE_MS", "0");
}
