//! A scripted agent for ralph's tests.

fn main() {}
