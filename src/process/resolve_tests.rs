use std::io;
use std::path::Path;

use super::super::Invocation;
use super::super::start_error::StartError;
use super::{explain, loader, may_run};

#[test]
fn what_the_system_says_is_told_apart() {
    let case =
        |code: i32| explain(io::Error::from_raw_os_error(code), &Invocation::new("agent", "/"), Path::new("/bin/sh"));
    assert!(matches!(case(libc::EAGAIN), StartError::TooManyProcesses));
    assert!(matches!(case(libc::EMFILE), StartError::TooManyFiles));
    assert!(matches!(case(libc::E2BIG), StartError::TooLong { .. }));
    assert!(matches!(case(libc::ENOEXEC), StartError::WrongFormat { .. }));
    assert!(matches!(case(libc::EACCES), StartError::NotExecutable { .. }));
    assert!(matches!(case(libc::ENOENT), StartError::MissingInterpreter { .. }));
    assert!(matches!(case(libc::EIO), StartError::Other { .. }));
    let gone = explain(
        io::Error::from_raw_os_error(libc::ENOENT),
        &Invocation::new("agent", "/no/such"),
        Path::new("/bin/sh"),
    );
    assert!(matches!(gone, StartError::CwdGone { .. }));
}

#[test]
fn a_loader_is_read_from_the_header_and_garbage_has_none() {
    let own = loader(Path::new("/proc/self/exe"));
    assert!(own.is_none_or(|own| own.starts_with('/')));
    let directory = tempfile::tempdir().unwrap();
    for length in [0, 4, 63, 64, 200, 5000] {
        let path = directory.path().join("garbage");
        let mut bytes = b"\x7fELF".to_vec();
        bytes.resize(length, 0xff);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(loader(&path), None, "{length}");
    }
}

#[test]
fn a_64_bit_kernel_runs_the_32_bit_form_of_its_own_processor() {
    let (x86, arm, x86_64, arm64) = (Some([3, 0]), Some([40, 0]), Some([62, 0]), Some([183, 0]));
    assert!(may_run(x86, x86_64) && may_run(arm, arm64) && may_run(arm64, arm64) && may_run(x86, None));
    assert!(!may_run(x86, arm64) && !may_run(arm, x86_64) && !may_run(arm64, x86_64));
}
