//! Ports for programs that must be told theirs.
//!
//! Below 32768: from there on the kernel takes the local ports of outgoing connections, and a burst of a
//! thousand buyers would now and then take one that a test has just chosen. Test runners start many processes
//! at once, so each process reserves a block of ports by a file lock, which the kernel gives back when the
//! process ends, however it ends.

use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener},
    sync::{Mutex, OnceLock},
};

const PORT_MIN: u16 = 14_000;
const BLOCKS: u16 = 170;
const BLOCK_LEN: u16 = 100;

struct Block {
    first: u16,
    used: Mutex<u16>,
    _lock: File,
}

/// `n` free ports on 127.0.0.1, never the same ones twice in a process until its hundred are used up.
///
/// # Panics
/// When there are no more.
pub fn free_ports(n: usize) -> Vec<u16> {
    static BLOCK: OnceLock<Block> = OnceLock::new();
    let block = BLOCK.get_or_init(reserve);
    let mut used = block.used.lock().expect("no test panics in here");
    let mut ports = Vec::with_capacity(n);
    for _ in 0..BLOCK_LEN {
        if ports.len() == n {
            break;
        }
        let port = block.first + *used % BLOCK_LEN;
        *used += 1;
        // Somebody outside of the tests may listen there.
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            ports.push(port);
        }
    }
    assert_eq!(ports.len(), n, "a test process has {BLOCK_LEN} ports at most");
    ports
}

fn reserve() -> Block {
    let dir = std::env::temp_dir().join("last-ticket-test-ports");
    std::fs::create_dir_all(&dir).expect("a temporary directory can be made");
    let start = rand::random_range(0..BLOCKS);
    (0..BLOCKS)
        .find_map(|turn| {
            let block = (start + turn) % BLOCKS;
            let lock = File::options()
                .create(true)
                .append(true)
                .open(dir.join(block.to_string()))
                .ok()?;
            lock.try_lock().ok()?;
            Some(Block {
                first: PORT_MIN + block * BLOCK_LEN,
                used: Mutex::new(0),
                _lock: lock,
            })
        })
        .expect("one of 170 blocks of ports is free")
}
