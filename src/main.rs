//! The binary: parse, dispatch, exit code.

fn main() {}
