//! seccomp's part: system calls that no agent needs and that Landlock knows nothing of.
//!
//! Programs are made before the fork. What a program can do without is answered as if the kernel did not have it, so that
//! it takes its other way; what it should not try is "not permitted".

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition as Condition,
    SeccompFilter, SeccompRule, sock_filter,
};

use super::{Backend, Network};

/// Kernel interfaces that are refused whatever their arguments.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_fanotify_init,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Memory, semaphores and queues that all processes of a user share.
const SYSTEM_V: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
];

/// What programs use when they find it, and can do without. The flags of `clone3` are in memory, where no filter can look;
/// the C library then takes `clone`.
const MISSING: &[libc::c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// In `clone` these bits are part of the exit signal.
const NEW_TIME: u64 = 0x80;

/// The old way to raw packets; libc calls it deprecated.
const SOCK_PACKET: libc::c_int = 10;
const MPTCP: u64 = 262;
const FAST_OPEN_CONNECT: u64 = 30;
/// What makes a terminal believe that someone typed.
const TYPES_INTO_TERMINALS: [u64; 2] = [0x5412, 0x541C];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The programs for one wall, in the order in which they are loaded. Each kind is made once.
pub(super) fn programs(backend: Backend, network: &Network) -> Result<Vec<BpfProgram>, String> {
    static MADE: [OnceLock<Vec<BpfProgram>>; 6] = [const { OnceLock::new() }; 6];
    let kind = match network {
        Network::All => 0,
        Network::None => 1,
        Network::Proxy { .. } => 2,
    };
    let place = &MADE[kind + if backend == Backend::Landlock { 0 } else { 3 }];
    if let Some(made) = place.get() {
        return Ok(made.clone());
    }
    let made = make(backend, network)?;
    Ok(place.get_or_init(|| made).clone())
}

fn make(backend: Backend, network: &Network) -> Result<Vec<BpfProgram>, String> {
    let wrong = |error: seccompiler::BackendError| format!("cannot make a seccomp filter: {error}");
    let refused = refused(backend).and_then(|rules| compile(rules, libc::EPERM)).map_err(wrong)?;
    let missing = MISSING.iter().map(|call| (*call, Vec::new())).collect();
    let missing = compile(missing, libc::ENOSYS).map_err(wrong)?;
    let sockets = sockets(network).and_then(|rules| compile(rules, libc::EAFNOSUPPORT)).map_err(wrong)?;
    let mut programs = vec![refused, missing, sockets];
    if let Some(first) = programs.first_mut() {
        refuse_other_numbers(first);
    }
    Ok(programs)
}

fn refused(backend: Backend) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if backend == Backend::Landlock {
        rules.extend(SYSTEM_V.iter().map(|call| (*call, Vec::new())));
    }
    let flags = NAMESPACES.iter().map(|flag| u64::from(flag.cast_unsigned()));
    let set = |flag: u64| has(0, Length::Qword, flag);
    rules.insert(libc::SYS_clone, flags.clone().map(set).collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_unshare, flags.chain([NEW_TIME]).map(set).collect::<Result<_, _>>()?);
    if backend == Backend::Landlock {
        // Other processes, by their number; 0 is the caller itself.
        let other = |at: u8| all([Condition::new(at, Length::Dword, Is::Ne, 0)?]);
        rules.insert(libc::SYS_setpriority, vec![other(1)?]);
        rules.insert(libc::SYS_prlimit64, vec![other(0)?]);
    }
    let typing = TYPES_INTO_TERMINALS.map(|request| all([Condition::new(1, Length::Dword, Is::Eq, request)?]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    Ok(rules)
}

/// Which sockets are refused. Landlock names ports of TCP, and TCP only.
fn sockets(network: &Network) -> Result<Rules, seccompiler::BackendError> {
    const INET: [libc::c_int; 2] = [libc::AF_INET, libc::AF_INET6];
    let word =
        |at: u8, is: Is, value: libc::c_int| Condition::new(at, Length::Dword, is, u64::from(value.cast_unsigned()));
    let kind = |value: libc::c_int| word(1, Is::MaskedEq(0xf), value);
    let mut families = vec![libc::AF_UNIX];
    match network {
        Network::All => families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]),
        Network::Proxy { .. } => families.extend(INET),
        Network::None => {}
    }
    let others = families.iter().map(|family| word(0, Is::Ne, *family)).collect::<Result<Vec<_>, _>>()?;
    let mut refused = vec![SeccompRule::new(others)?];
    for family in INET {
        for raw in [libc::SOCK_RAW, SOCK_PACKET] {
            refused.push(all([word(0, Is::Eq, family)?, kind(raw)?])?);
        }
        if matches!(network, Network::Proxy { .. }) {
            refused.push(all([word(0, Is::Eq, family)?, word(1, Is::MaskedEq(0xf), libc::SOCK_DGRAM)?])?);
            refused.push(all([word(0, Is::Eq, family)?, kind(libc::SOCK_SEQPACKET)?])?);
            let mptcp = Condition::new(2, Length::Dword, Is::Eq, MPTCP)?;
            refused.push(all([word(0, Is::Eq, family)?, mptcp])?);
        }
    }
    let mut rules = Rules::from([(libc::SYS_socket, refused)]);
    if matches!(network, Network::Proxy { .. }) {
        // A connection that starts with its first data is not asked for by `connect`, so Landlock does not see it.
        let fast = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
        for (call, at) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            rules.insert(call, vec![has(at, Length::Dword, fast)?]);
        }
        let level = word(1, Is::Eq, libc::IPPROTO_TCP)?;
        let option = Condition::new(2, Length::Dword, Is::Eq, FAST_OPEN_CONNECT)?;
        rules.insert(libc::SYS_setsockopt, vec![all([level, option])?]);
    }
    Ok(rules)
}

fn has(at: u8, length: Length, flag: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    all([Condition::new(at, length, Is::MaskedEq(flag), flag)?])
}

fn all(conditions: impl Into<Vec<Condition>>) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.into())
}

fn compile(rules: Rules, error: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let action = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, action, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Calls by the numbers of x32 are the same calls, and a filter by number would not know them.
fn refuse_other_numbers(program: &mut BpfProgram) {
    if cfg!(target_arch = "x86_64") {
        const X32: u32 = 0x4000_0000;
        const REFUSE: u32 = 0x0005_0000;
        let instruction = |code: u16, jt: u8, jf: u8, k: u32| sock_filter { code, jt, jf, k };
        // Load the number; below X32 go on, else answer that there is no such call.
        let head = [
            instruction(0x20, 0, 0, 0),
            instruction(0x35, 0, 1, X32),
            instruction(0x06, 0, 0, REFUSE | libc::ENOSYS.cast_unsigned()),
        ];
        program.splice(0..0, head);
    }
}

/// True when this kernel takes filters.
#[expect(unsafe_code, reason = "seccomp is not in rustix")]
pub(super) fn is_available() -> bool {
    const ASK_ACTION: libc::c_uint = 2;
    let action: u32 = 0x0005_0000;
    // SAFETY: it only asks whether the kernel knows an action.
    unsafe { libc::syscall(libc::SYS_seccomp, ASK_ACTION, 0, &raw const action) == 0 }
}

/// Loads a program. Used between fork and exec, after `no_new_privs`.
#[expect(unsafe_code, reason = "seccomp is not in rustix")]
pub(super) fn load(program: &[sock_filter]) -> io::Result<()> {
    const SET_FILTER: libc::c_uint = 1;
    let length = libc::c_ushort::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let filter = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: the two structures of an instruction have the same layout, and the kernel copies the program.
    match unsafe { libc::syscall(libc::SYS_seccomp, SET_FILTER, 0, &raw const filter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A program as bytes, as bubblewrap reads it.
pub(super) fn bytes(program: &[sock_filter]) -> Vec<u8> {
    program
        .iter()
        .flat_map(|line| {
            let mut bytes = line.code.to_ne_bytes().to_vec();
            bytes.extend([line.jt, line.jf]);
            bytes.extend(line.k.to_ne_bytes());
            bytes
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_made_for_every_network_and_stay_small() {
        let (sockets, _) = std::sync::mpsc::channel();
        for network in [Network::All, Network::None, Network::Proxy { port: 1, sockets }] {
            for backend in [Backend::Landlock, Backend::Bubblewrap] {
                let programs = programs(backend, &network).unwrap();
                assert!(programs.iter().all(|program| (4..2000).contains(&program.len())));
                assert_eq!(bytes(&programs[0]).len(), programs[0].len() * 8);
            }
        }
    }
}
