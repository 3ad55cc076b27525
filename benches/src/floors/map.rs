//! Segments in memory: mapped, cut at line feeds, and every line's checksum computed and compared.
#![expect(unsafe_code, reason = "a memory map cannot be made without it")]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::stored;

/// How long the trailer of a line is, its line feed included.
const TRAILER: usize = 19;

/// The segments of a store, mapped.
#[must_use]
pub fn segments(store: &Path) -> Vec<Mmap> {
    stored::segments(store).iter().map(|path| map(path)).collect()
}

/// A whole file, mapped.
#[must_use]
pub fn map(path: &Path) -> Mmap {
    let file = File::open(path).unwrap();
    // SAFETY: the stores of the workload are written once, before they are measured, and by nobody after that.
    unsafe { Mmap::map(&file).unwrap() }
}

/// Calls `take` with every line that verifies, its line feed left out; returns how many did.
pub fn lines<'a>(segment: &'a [u8], mut take: impl FnMut(&'a [u8])) -> u64 {
    let (mut start, mut good) = (0, 0);
    for end in memchr::memchr_iter(b'\n', segment) {
        if let Some(line) = segment.get(start..end).filter(|line| verifies(line)) {
            take(line);
            good += 1;
        }
        start = end + 1;
    }
    good
}

/// Whether the checksum of a line is that of its bytes.
#[must_use]
pub fn verifies(line: &[u8]) -> bool {
    let Some((body, trailer)) = line.split_at_checked((line.len() + 1).saturating_sub(TRAILER))
    else {
        return false;
    };
    let mut crc = crc32fast::Hasher::new();
    crc.update(body);
    let mut digits = *b",\"crc\":\"00000000\"}";
    let mut rest = crc.finalize();
    for digit in digits.iter_mut().skip(8).take(8).rev() {
        *digit = match rest & 15 {
            nibble @ 0..=9 => b'0' + nibble.to_le_bytes()[0],
            nibble => b'a' + nibble.to_le_bytes()[0] - 10,
        };
        rest >>= 4;
    }
    trailer == digits
}

/// Verifies all segments with so many threads; returns how many lines are good.
#[must_use]
pub fn verify(segments: &[Mmap], threads: usize) -> u64 {
    count(segments, threads, |segment| lines(segment, |_| {}))
}

/// The same, and of the lines that verify those count that are UTF-8.
#[must_use]
pub fn verify_text(segments: &[Mmap], threads: usize) -> u64 {
    count(segments, threads, |segment| {
        let mut good = 0;
        lines(segment, |line| good += u64::from(simdutf8::basic::from_utf8(line).is_ok()));
        good
    })
}

fn count(segments: &[Mmap], threads: usize, of: impl Fn(&[u8]) -> u64 + Sync) -> u64 {
    let of = &of;
    let part = segments.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = segments
            .chunks(part)
            .map(|part| scope.spawn(move || part.iter().map(|segment| of(segment)).sum()))
            .collect();
        parts.into_iter().map(|part| -> u64 { part.join().unwrap() }).sum()
    })
}
