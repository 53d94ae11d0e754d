//! The form of files that hold a state: snapshots on disk, and backups.
//!
//! ```text
//! magic (8 bytes) · length of the header · checksum of the header · header · body
//! ```
//!
//! The header carries what the body is, its length and its checksum. All of it is checked before any of it is used: a
//! file that was cut short, that rotted, or that is something else is told from a good one, with words for people.

use bytes::{Buf, Bytes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const MAGIC_BYTES: usize = 8;
const LENGTHS_BYTES: usize = 8;

#[derive(Serialize, Deserialize)]
struct Header<T> {
    what: T,
    body_bytes: u64,
    body_crc: u32,
}

/// What stands in front of `body` in the file.
pub(crate) fn front<T: Serialize>(magic: &[u8; MAGIC_BYTES], what: &T, body: &[u8]) -> Vec<u8> {
    let header = postcard::to_stdvec(&Header {
        what,
        body_bytes: body.len() as u64,
        body_crc: crc32fast::hash(body),
    })
    .expect("plain values always encode into memory");
    let header_bytes = u32::try_from(header.len()).expect("a header is small");
    let mut front = Vec::with_capacity(MAGIC_BYTES + LENGTHS_BYTES + header.len());
    front.extend_from_slice(magic);
    front.extend_from_slice(&header_bytes.to_le_bytes());
    front.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
    front.extend_from_slice(&header);
    front
}

/// What a file is and its body, if all of it checks out.
pub(crate) fn open<T: DeserializeOwned>(
    magic: &[u8; MAGIC_BYTES],
    mut file: Bytes,
) -> Result<(T, Bytes), &'static str> {
    if file.len() < MAGIC_BYTES + LENGTHS_BYTES || file.split_to(MAGIC_BYTES) != magic[..] {
        return Err("it does not begin like one of this program's");
    }
    let (header_bytes, header_crc) = (file.get_u32_le() as usize, file.get_u32_le());
    if file.len() < header_bytes {
        return Err("it ends inside its header");
    }
    let header = file.split_to(header_bytes);
    if crc32fast::hash(&header) != header_crc {
        return Err("the checksum of its header is wrong");
    }
    let header: Header<T> = postcard::from_bytes(&header).map_err(|_| "its header is unreadable")?;
    if file.len() as u64 != header.body_bytes || crc32fast::hash(&file) != header.body_crc {
        return Err("the checksum of its state is wrong");
    }
    Ok((header.what, file))
}
