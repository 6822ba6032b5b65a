//! Bytes arrive as they were written, however many and whatever they are.

use std::time::Duration;

use ralph::process::{Exit, Lines, Output, Part, Stream, start};

use super::support::{patient, real_time, run, shell};

#[test]
fn random_bytes_arrive_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("copy");
    let seen = run(shell(&format!("head -c 3000000 /dev/urandom | tee {}", file.display())), patient());
    assert!(seen.stdout == std::fs::read(&file).unwrap(), "{} bytes", seen.stdout.len());
}

#[test]
fn nul_carriage_return_escape_and_a_half_line_arrive_unchanged() {
    let seen = run(shell(r"printf 'a\0b\r\nc\rd\033[31m\377\376 no newline'"), patient());
    assert_eq!(seen.stdout, b"a\0b\r\nc\rd\x1b[31m\xff\xfe no newline");
}

#[test]
fn a_flood_on_both_streams_arrives_in_full() {
    let seen = run(shell("head -c 40000000 /dev/zero & head -c 40000000 /dev/zero >&2; wait"), patient());
    assert_eq!((seen.stdout.len(), seen.stderr.len()), (40_000_000, 40_000_000));
    assert_eq!(seen.ended.exit, Exit::Code(0));
}

#[test]
fn a_slow_reader_loses_nothing() {
    real_time(async {
        let mut process = start(shell("head -c 2000000 /dev/zero"), patient()).unwrap();
        let mut count = 0;
        while let Output::Bytes { bytes, .. } = process.next().await {
            count += bytes.len();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(count, 2_000_000);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_can_say_most_of_a_megabyte_before_anybody_reads() {
    // Agents that do not wait for a full pipe lose the rest of their line, and end.
    use super::support::eventually;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("said");
    real_time(async {
        let script = format!("sleep 0.2; head -c 900000 /dev/zero; : > {}", file.display());
        let mut process = start(shell(&script), patient()).unwrap();
        assert!(eventually(Duration::from_secs(10), || file.exists()), "it waits for a reader");
        let mut count = 0;
        while let Output::Bytes { bytes, .. } = process.next().await {
            count += bytes.len();
        }
        assert_eq!(count, 900_000);
    });
}

#[test]
fn the_last_bytes_before_a_kill_arrive() {
    real_time(async {
        // All that was written before the kill sits in the pipe; the kill must not throw it away.
        let mut process = start(shell("head -c 60000 /dev/zero; : > /dev/null; kill -KILL $$"), patient()).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut count = 0;
        let ended = loop {
            match process.next().await {
                Output::Bytes { bytes, .. } => count += bytes.len(),
                Output::Ended(ended) => break ended,
            }
        };
        assert_eq!((count, ended.exit), (60_000, Exit::Signal(9)));
    });
}

#[test]
fn an_agent_may_close_its_output_and_live_on() {
    let seen = run(shell("echo bye; exec >&- 2>&-; sleep 0.5; exit 6"), patient());
    assert_eq!((seen.text().as_str(), seen.ended.exit), ("bye\n", Exit::Code(6)));
    assert!(seen.took >= Duration::from_millis(500), "{:?}", seen.took);
}

#[test]
fn a_line_beyond_the_cap_comes_in_marked_parts_and_the_next_one_is_whole() {
    real_time(async {
        let mut process = start(shell("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo next"), patient()).unwrap();
        let mut lines = Lines::new(1_000_000);
        let mut parts = Vec::new();
        while let Output::Bytes { from, bytes } = process.next().await {
            assert_eq!(from, Stream::Stdout);
            lines.push(bytes, |line| parts.push((line.part, line.bytes.len())));
        }
        let [(Part::First, _), middle @ .., (Part::Last, _), (Part::Whole, 4)] = &parts[..] else {
            panic!("{parts:?}");
        };
        assert!(middle.iter().all(|(part, length)| *part == Part::Middle && *length <= 1_000_000), "{parts:?}");
        assert_eq!(parts.iter().map(|(_, length)| length).sum::<usize>(), 5_000_004);
    });
}
