//! The frames of the peer port: those of the clients' pipe, with limits of their own.

use std::io;

use bytes::BytesMut;
pub(super) use lock_pipe::frame::{FrameReader, decode};
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The largest frame: a request with a mebibyte of entries and one entry more, or a chunk of a snapshot.
pub(super) const FRAME_BYTES_MAX: usize = 4 << 20;
/// The largest frame before a peer has proved who it is.
pub(super) const HANDSHAKE_BYTES_MAX: usize = 256;

/// Appends `value` as one frame.
pub(super) fn put<T: Serialize>(out: &mut BytesMut, value: &T) -> io::Result<()> {
    lock_pipe::frame::put(out, value, FRAME_BYTES_MAX)
}

/// Appends `bytes` as one frame.
pub(super) fn put_raw(out: &mut BytesMut, bytes: &[u8]) -> io::Result<()> {
    lock_pipe::frame::put_raw(out, bytes, FRAME_BYTES_MAX)
}

/// Writes one frame at once.
pub(super) async fn send<T: Serialize>(io: &mut (impl AsyncWrite + Unpin), value: &T) -> io::Result<()> {
    let mut out = BytesMut::new();
    put(&mut out, value)?;
    write(io, &out).await
}

/// Writes frames, and sees to it that they leave: under TLS, what was written may still be on this side.
pub(super) async fn write(io: &mut (impl AsyncWrite + Unpin), frames: &[u8]) -> io::Result<()> {
    io.write_all(frames).await?;
    io.flush().await
}
