//! Who does what: all of it follows from the seed.

use std::time::Duration;

/// How an agent misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Finish,
    Hang,
    IgnoreTerm,
    Daemon,
    BareDaemon,
    Flood,
    HalfLine,
    Binary,
    CloseStdout,
    KillSelf,
    ForkBomb,
    ChildWrites,
}

pub const KINDS: [Kind; 12] = [
    Kind::Finish,
    Kind::Hang,
    Kind::IgnoreTerm,
    Kind::Daemon,
    Kind::BareDaemon,
    Kind::Flood,
    Kind::HalfLine,
    Kind::Binary,
    Kind::CloseStdout,
    Kind::KillSelf,
    Kind::ForkBomb,
    Kind::ChildWrites,
];

impl Kind {
    /// True when only a stop ends it.
    pub fn needs_stop(self) -> bool {
        matches!(self, Self::Hang | Self::IgnoreTerm | Self::Flood)
    }
}

/// What is done to an agent from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Never,
    Ask(Duration),
    Kill(Duration),
    Total(Duration),
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub number: u64,
    pub kind: Kind,
    pub stop: Stop,
    /// How many lines it writes before it does what it is there for.
    pub lines: u64,
}

impl Plan {
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kind = KINDS[random.below(KINDS.len() as u64) as usize];
        let lines = random.below(400);
        let after = Duration::from_millis(50 + random.below(1200));
        let stop = match random.below(if kind.needs_stop() { 3 } else { 10 }) {
            0 => Stop::Ask(after),
            1 => Stop::Kill(after),
            2 => Stop::Total(after),
            _ => Stop::Never,
        };
        Self { number, kind, stop, lines }
    }

    /// Line `index` of what the agent writes: the same in the agent and in the check.
    pub fn line(&self, index: u64) -> Vec<u8> {
        let mut random = Random::new(self.number << 32 | index);
        let mut line = format!("{} {index} ", self.number).into_bytes();
        let length = random.below(300);
        match self.kind {
            Kind::Binary => line.extend((0..length).map(|_| random.below(256) as u8)),
            _ => line.extend((0..length).map(|_| b'a' + random.below(26) as u8)),
        }
        line.push(b'\n');
        line
    }
}

/// Enough of a random generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % limit
    }
}
