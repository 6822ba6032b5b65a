//! Arguments of the page for the browser.

use std::net::IpAddr;

use clap::Args;

/// `ralph serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The port; 0 takes any free one [default: 7331, or a free one if it is taken].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// The address to listen on; `0.0.0.0` makes the page reachable from your network.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: IpAddr,

    /// The token of the address, instead of a random one: at least 16 letters, digits, `-` or `_`.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,

    /// Show runs, but accept no orders.
    #[arg(long)]
    pub read_only: bool,

    /// Open the page in your browser.
    #[arg(long)]
    pub open: bool,

    /// Print the address as a QR code, for a phone.
    #[arg(long)]
    pub qr: bool,
}

const EXAMPLES: &str = "Examples:
  ralph serve --open                              watch and steer all runs in your browser
  ralph serve --bind 0.0.0.0 --read-only --qr     watch from a phone in the same network";
