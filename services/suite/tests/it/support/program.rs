//! The program `last-ticket`, which can be killed as a whole.

use std::path::Path;
use std::time::Duration;

use last_ticket::Ports;
use testkit::Program;
use tokio::process::Command;

/// How long a start may take. A debug build on a busy machine.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// The command line of a suite in this folder, on these ports.
pub(crate) fn command(data_dir: &Path, ports: &Ports) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_last-ticket"));
    command
        .arg("--data-dir")
        .arg(data_dir)
        .args(["--port", &ports.front_door.to_string()]);
    for (flag, ports) in [
        ("--checkout-ports", &ports.checkout[..]),
        ("--inventory-ports", &ports.inventory),
        ("--billing-ports", &ports.billing),
        ("--gateway-port", &[ports.gateway]),
        ("--lock-client-ports", &ports.lock_clients),
        ("--lock-peer-ports", &ports.lock_peers),
    ] {
        let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
        command.args([flag, &ports.join(",")]);
    }
    command.env(
        "RUST_LOG",
        std::env::var("RUST_LOG").unwrap_or("warn,openraft=error".to_owned()),
    );
    command
}

/// Starts it and waits until a purchase would work.
pub(crate) async fn start(data_dir: &Path, ports: &Ports) -> Program {
    let mut program = Program::spawn("last-ticket", command(data_dir, ports)).unwrap();
    let url = program.ready(READY_WITHIN).await;
    assert_eq!(url, format!("http://127.0.0.1:{}", ports.front_door));
    program
}
