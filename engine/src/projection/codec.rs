//! How the state of a projection becomes bytes and is read back: bincode 2. Nothing else knows the codec. A snapshot is
//! a cache, so that another codec costs one refold: the schema of every projection follows from this file too, and the
//! release of bincode is pinned to 2.0.1.

use bincode::config::{Config, standard};
use bincode::serde::{borrow_decode_from_slice, encode_to_vec};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes of a value; `None` when it does not serialise.
pub(super) fn encode(value: &impl Serialize) -> Option<Vec<u8>> {
    encode_to_vec(value, standard()).ok()
}

/// Reads a value back; `None` for bytes that are none. However the bytes are made, no more is asked for at once than a
/// small multiple of their number.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    // The codec counts what values take in memory, at most nine times what they take here. Its limit is a constant.
    match bytes.len() {
        ..0x400 => whole(bytes, standard().with_limit::<{ 16 << 10 }>()),
        0x400..0x4000 => whole(bytes, standard().with_limit::<{ 256 << 10 }>()),
        0x4000..0x4_0000 => whole(bytes, standard().with_limit::<{ 4 << 20 }>()),
        0x4_0000..0x40_0000 => whole(bytes, standard().with_limit::<{ 64 << 20 }>()),
        0x40_0000..0x400_0000 => whole(bytes, standard().with_limit::<{ 1 << 30 }>()),
        _ => whole(bytes, standard().with_limit::<{ 4 << 30 }>()),
    }
}

fn whole<T: DeserializeOwned>(bytes: &[u8], config: impl Config) -> Option<T> {
    let (value, read) = borrow_decode_from_slice(bytes, config).ok()?;
    (read == bytes.len()).then_some(value)
}
