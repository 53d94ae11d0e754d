//! What a crash, or a tired medium, makes of a log: it comes back as exactly what was whole, or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::device::{DeviceState, LogDevice, LogPosition, VoteRecord};
use super::disk::DiskLog;
use crate::faults::NodeFaults;

type Contents = (DeviceState, Vec<(LogPosition, Bytes)>);

/// A log with entries, votes and all else that is written to one, and what it holds after each write.
struct Written {
    dir: tempfile::TempDir,
    /// The length of the file after each write, and what it then held.
    steps: Vec<(usize, Contents)>,
    /// The only file, and what is in it.
    chunk: PathBuf,
    bytes: Vec<u8>,
}

impl Written {
    /// Opens the log with this in its file.
    fn open_with(&self, bytes: &[u8]) -> std::io::Result<DiskLog> {
        // The one before may have gone on in a new file.
        for file in chunks(self.dir.path()) {
            fs::remove_file(file).unwrap();
        }
        fs::write(&self.chunk, bytes).unwrap();
        open(self.dir.path())
    }
}

fn open(dir: &Path) -> std::io::Result<DiskLog> {
    DiskLog::open(dir, NodeFaults::new(false, &[]))
}

fn contents(log: &DiskLog) -> Contents {
    (log.state(), log.read(0..u64::MAX, usize::MAX).unwrap())
}

fn chunks(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "wal"))
        .collect()
}

/// The file that is written: this little fits into one.
fn chunk(dir: &Path) -> PathBuf {
    let chunks = chunks(dir);
    assert_eq!(chunks.len(), 1);
    chunks.into_iter().next().unwrap()
}

fn flush(log: &mut DiskLog) {
    let (told, flushed) = std::sync::mpsc::channel();
    log.flush(Box::new(move |result| told.send(result).unwrap()))
        .unwrap();
    flushed.recv().unwrap().unwrap();
}

fn at(term: u64, index: u64) -> LogPosition {
    LogPosition { term, index }
}

fn entry(term: u64, index: u64) -> (LogPosition, Bytes) {
    let length = 4 * usize::try_from(index).unwrap();
    (at(term, index), Bytes::from(vec![0xa5; length]))
}

fn vote(term: u64, committed: bool) -> VoteRecord {
    VoteRecord {
        term,
        node: 2,
        committed,
    }
}

fn write() -> Written {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path()).unwrap();
    let mut steps = Vec::new();
    type Write = Box<dyn FnOnce(&mut DiskLog)>;
    let writes: Vec<Write> = vec![
        Box::new(|log| log.save_vote(vote(1, false)).unwrap()),
        Box::new(|log| log.save_vote(vote(1, true)).unwrap()),
        Box::new(|log| log.append(vec![entry(1, 1)]).unwrap()),
        Box::new(|log| log.append(vec![entry(1, 2)]).unwrap()),
        Box::new(|log| log.save_committed(at(1, 2)).unwrap()),
        Box::new(|log| log.append(vec![entry(1, 3)]).unwrap()),
        Box::new(|log| log.append(vec![entry(1, 4)]).unwrap()),
        Box::new(|log| log.purge(at(1, 1)).unwrap()),
        Box::new(|log| log.truncate(4).unwrap()),
        Box::new(|log| log.save_vote(vote(2, true)).unwrap()),
        Box::new(|log| log.append(vec![entry(2, 4)]).unwrap()),
    ];
    flush(&mut log);
    let mut remember = |log: &mut DiskLog| {
        flush(log);
        steps.push((fs::read(chunk(dir.path())).unwrap().len(), contents(log)));
    };
    remember(&mut log);
    for write in writes {
        write(&mut log);
        remember(&mut log);
    }
    drop(log);
    let chunk = chunk(dir.path());
    let bytes = fs::read(&chunk).unwrap();
    Written {
        dir,
        steps,
        chunk,
        bytes,
    }
}

#[test]
fn a_log_cut_off_anywhere_comes_back_as_what_was_whole() {
    let written = write();
    let first = written.steps[0].0;
    for len in first..=written.bytes.len() {
        let log = written.open_with(&written.bytes[..len]).unwrap();
        let whole = written.steps.iter().rev().find(|(end, _)| *end <= len).unwrap();
        assert_eq!(contents(&log), whole.1, "cut off after {len} bytes");
    }
}

#[test]
fn a_damaged_log_is_refused_and_never_taken_for_another() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let written = write();
    let (_, (state, entries)) = written.steps.last().unwrap();
    for at in 0..written.bytes.len() {
        // Each bit where lengths may be, one of eight elsewhere would do; this little, all of them.
        for bit in 0..8 {
            let mut damaged = written.bytes.clone();
            damaged[at] ^= 1 << bit;
            assert_refused_or_same(
                &written,
                &damaged,
                &format!("bit {bit} of byte {at}"),
                state,
                entries,
            );
        }
    }
    for _ in 0..500 {
        let mut damaged = written.bytes.clone();
        for _ in 0..random.random_range(2..6) {
            let at = random.random_range(0..damaged.len());
            damaged[at] = random.random();
        }
        assert_refused_or_same(&written, &damaged, "several bytes", state, entries);
    }
}

/// The hint at what is committed may be lost with its record: it is only a hint.
fn assert_refused_or_same(
    written: &Written,
    damaged: &[u8],
    what: &str,
    state: &DeviceState,
    entries: &[(LogPosition, Bytes)],
) {
    match written.open_with(damaged) {
        Err(error) => {
            let (said, dir) = (error.to_string(), written.dir.path().display().to_string());
            assert!(said.contains(&dir), "{what}: it says where: {said}");
        }
        Ok(log) => {
            let (found, found_entries) = contents(&log);
            let found = DeviceState {
                committed: state.committed,
                ..found
            };
            assert_eq!((found, &found_entries[..]), (*state, entries), "{what}");
        }
    }
}
