//! What the command line says, word for word.

#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use ralph::journal::State;

#[test]
fn the_command_line_says_what_its_documents_say() {
    let state = tempfile::tempdir().unwrap();
    // The run that `history.trycmd` looks at.
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/history.in");
    let store = State::at(state.path()).store(&place);
    store.create().unwrap();
    let copied = std::process::Command::new("cp").arg("-R").arg(place.join("runs")).arg(store.path()).status();
    assert!(copied.unwrap().success());
    trycmd::TestCases::new()
        .case("tests/cli/*.trycmd")
        .register_bin("sh", Path::new("/bin/sh"))
        .env("RALPH", env!("CARGO_BIN_EXE_ralph"))
        .env("RALPH_STATE_DIR", state.path().display().to_string())
        .env("COLUMNS", "100")
        .env("TZ", "UTC")
        .env("RALPH_DEMO_PAUSE_MS", "0")
        .run();
}
