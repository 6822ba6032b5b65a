use std::collections::HashSet;
use std::time::Duration;

use super::super::table::{Entry, Table};
use super::{Identity, select};

const ROOT: Identity = Identity { pid: 100, started: 50 };

fn entry(pid: i32, parent: i32, group: i32, session: i32, started: u64) -> Entry {
    Entry { pid, parent, group, session, zombie: false, threads: 1, started, used: Duration::ZERO }
}

fn members(entries: &[Entry], known: &[Identity], marked: &[i32]) -> Vec<i32> {
    let known: HashSet<Identity> = known.iter().copied().collect();
    let table = Table::new(entries.to_vec());
    let found = select(&table, ROOT, &known, table.all().filter(|entry| marked.contains(&entry.pid)));
    let mut pids: Vec<i32> = found.into_iter().map(|entry| entry.pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn group_session_parents_and_mark_each_prove_membership() {
    let entries = [
        entry(1, 0, 1, 1, 0),
        entry(100, 7, 100, 100, 50),
        entry(101, 1, 100, 100, 51),
        entry(102, 1, 102, 100, 52),
        entry(103, 100, 103, 103, 53),
        entry(104, 103, 104, 104, 54),
        entry(105, 7, 105, 105, 55),
        entry(106, 105, 106, 106, 56),
        entry(107, 7, 107, 107, 57),
    ];
    assert_eq!(members(&entries, &[], &[105]), [100, 101, 102, 103, 104, 105, 106]);
}

#[test]
fn a_shell_is_killed_before_the_command_it_waits_for() {
    // The command has the lower number and is known, the shell is only marked.
    let entries = [entry(100, 7, 100, 100, 50), entry(103, 105, 103, 103, 55), entry(105, 7, 105, 105, 55)];
    let table = Table::new(entries.to_vec());
    let known = HashSet::from([Identity { pid: 103, started: 55 }]);
    let found = select(&table, ROOT, &known, table.all().filter(|entry| entry.pid == 105));
    let order: Vec<i32> = found.into_iter().map(|entry| entry.pid).collect();
    let place = |pid: i32| order.iter().position(|one| *one == pid);
    assert!(place(105) < place(103) && place(103).is_some(), "{order:?}");
}

#[test]
fn one_that_was_known_stays_a_member_but_its_number_alone_does_not_prove_it() {
    let entries = [entry(100, 7, 100, 100, 50), entry(103, 7, 103, 103, 53), entry(104, 7, 104, 104, 90)];
    let known = [Identity { pid: 103, started: 53 }, Identity { pid: 104, started: 54 }];
    assert_eq!(members(&entries, &known, &[]), [100, 103]);
}

#[test]
fn nobody_who_is_older_than_the_root_belongs() {
    let entries = [entry(100, 7, 100, 100, 50), entry(60, 7, 100, 100, 49), entry(61, 100, 61, 61, 40)];
    assert_eq!(members(&entries, &[], &[60, 61]), [100]);
}

#[test]
fn a_number_that_is_used_again_proves_nothing() {
    // The root is reaped, and a stranger has its number and leads a group.
    let entries = [entry(100, 1, 100, 100, 80), entry(110, 100, 100, 100, 81), entry(120, 7, 120, 120, 60)];
    assert_eq!(members(&entries, &[], &[120]), [120]);
}

#[test]
fn a_group_outlives_its_leader() {
    assert_eq!(members(&[entry(110, 1, 100, 100, 60)], &[], &[]), [110]);
}
