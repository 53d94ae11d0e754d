//! Frames: a length of four bytes, little end first, and so many bytes.
//!
//! Reading is safe to cancel at any point, which `select!` does all the time: what has arrived stays in the buffer.
//! The length is checked before it is believed, and the buffer grows with what arrives, not with what is announced.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt};

const LENGTH_BYTES: usize = 4;
/// Room for one read, where nothing else is said.
const READ_BYTES: usize = 64 << 10;

/// The reading half.
#[derive(Debug)]
pub struct FrameReader<Io> {
    io: Io,
    buffer: BytesMut,
    read_bytes: usize,
}

impl<Io: AsyncRead + Unpin> FrameReader<Io> {
    /// Frames from the beginning of `io`.
    pub fn new(io: Io) -> Self {
        Self {
            io,
            buffer: BytesMut::new(),
            read_bytes: READ_BYTES,
        }
    }

    /// The same for an `io` of which some was read already.
    #[must_use]
    pub fn after(mut self, read: &[u8]) -> Self {
        self.buffer.extend_from_slice(read);
        self
    }

    /// With room for so many bytes a read. It is there while the reader waits, so it is what an idle connection costs.
    #[must_use]
    pub fn reading(mut self, bytes: usize) -> Self {
        self.read_bytes = bytes;
        self
    }

    /// The next frame, of at most `bytes_max`; `None` at the end of the stream. Safe to cancel.
    pub async fn next(&mut self, bytes_max: usize) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(frame) = self.take(bytes_max)? {
                return Ok(Some(frame));
            }
            self.buffer.reserve(self.read_bytes);
            if self.io.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the other end hung up inside a frame",
                    ))
                };
            }
        }
    }

    /// The next frame, which must come.
    pub async fn expect(&mut self, bytes_max: usize) -> io::Result<Bytes> {
        let hung_up = || io::Error::new(io::ErrorKind::UnexpectedEof, "the other end hung up");
        self.next(bytes_max).await?.ok_or_else(hung_up)
    }

    /// The next frame, if it has arrived as a whole.
    pub fn take(&mut self, bytes_max: usize) -> io::Result<Option<Bytes>> {
        let Some(length) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > bytes_max {
            let message = format!("a frame of {length} bytes, {bytes_max} are allowed here");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        if self.buffer.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

/// Appends `value` as one frame of at most `bytes_max`; nothing if it cannot be one.
pub fn put<T: Serialize>(out: &mut BytesMut, value: &T, bytes_max: usize) -> io::Result<()> {
    let start = out.len();
    out.put_u32_le(0);
    // Through `io::Write`, which takes a batch's bytes in one copy.
    if let Err(error) = postcard::to_io(value, (&mut *out).writer()) {
        out.truncate(start);
        return Err(io::Error::other(error));
    }
    close(out, start, bytes_max)
}

/// Appends `bytes` as one frame of at most `bytes_max`.
pub fn put_raw(out: &mut BytesMut, bytes: &[u8], bytes_max: usize) -> io::Result<()> {
    let start = out.len();
    out.put_u32_le(0);
    out.extend_from_slice(bytes);
    close(out, start, bytes_max)
}

fn close(out: &mut BytesMut, start: usize, bytes_max: usize) -> io::Result<()> {
    let length = out.len() - start - LENGTH_BYTES;
    if length > bytes_max {
        out.truncate(start);
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a frame of {length} bytes is more than the other end takes"),
        ));
    }
    let length = u32::try_from(length).map_err(io::Error::other)?;
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Reads a value out of a frame.
pub fn decode<T: serde::de::DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    postcard::from_bytes(frame).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a frame is unreadable: {error}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn frames_arrive_whole_however_they_were_cut() {
        let mut out = BytesMut::new();
        put(&mut out, &"first", 64).unwrap();
        put_raw(&mut out, b"", 64).unwrap();
        put_raw(&mut out, b"third", 64).unwrap();
        let before = out.len();
        assert!(put(&mut out, &"longer", 6).is_err());
        assert_eq!(out.len(), before, "nothing of it is left");
        // One byte at a time.
        let (mut near, far) = tokio::io::duplex(1);
        tokio::spawn(async move { near.write_all(&out).await });
        let mut reader = FrameReader::new(far);
        assert_eq!(
            decode::<String>(&reader.expect(64).await.unwrap()).unwrap(),
            "first"
        );
        assert_eq!(reader.expect(64).await.unwrap().len(), 0);
        assert_eq!(&reader.expect(64).await.unwrap()[..], b"third");
        assert!(reader.next(64).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_length_beyond_the_limit_is_refused_before_its_bytes_arrive() {
        let mut reader = FrameReader::new(&[0xff, 0xff, 0xff, 0x7f][..]);
        let error = reader.next(1 << 20).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn half_a_frame_and_the_end_is_an_error() {
        let mut reader = FrameReader::new(&[9, 0, 0, 0, 1, 2][..]);
        assert_eq!(
            reader.next(64).await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
