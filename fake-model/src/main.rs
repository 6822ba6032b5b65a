//! `fake-model SCENARIO [--port N] [--workspace DIR] [--seconds N] [--requests N]`: serves a script on loopback.
//!
//! Prints its address, and ends with its bounds or when its standard input closes, so never later than its parent.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fake_model::{Bounds, Scenario, Server};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut bounds = Bounds::default();
    let (mut file, mut port, mut workspace) = (None, 0, std::env::current_dir().map_err(|error| error.to_string())?);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let value = words.next().ok_or(format!("`{word}` needs a value"))?;
            value.parse().map_err(|_| format!("`{word}` needs a number, not `{value}`"))
        };
        match word.as_str() {
            "--port" => port = u16::try_from(number()?).map_err(|error| error.to_string())?,
            "--seconds" => bounds.lifetime = Duration::from_secs(number()?),
            "--requests" => bounds.requests = number()?,
            "--workspace" => workspace = PathBuf::from(words.next().ok_or("`--workspace` needs a directory")?),
            _ if word.starts_with('-') => return Err(format!("unknown option `{word}`")),
            _ => file = Some(PathBuf::from(word)),
        }
    }
    let file = file.ok_or("usage: fake-model SCENARIO [--port N] [--workspace DIR] [--seconds N] [--requests N]")?;
    let server = Server::start(Scenario::load(&file)?, &workspace, bounds, port).map_err(|error| error.to_string())?;
    println!("{}", server.address());
    let (parent_is_gone, gone) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut ignored = [0; 256];
        while std::io::stdin().read(&mut ignored).is_ok_and(|read| read > 0) {}
        // The other side may have ended first.
        let _ = parent_is_gone.send(());
    });
    while !server.over() && gone.recv_timeout(Duration::from_millis(20)).is_err() {}
    Ok(())
}
