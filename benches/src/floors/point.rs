//! The last turns of a session from a map and an index of offsets: each line is found by its place and verified.

use std::collections::HashMap;

use memmap2::Mmap;

use super::map;

/// Where the lines of each stream are.
pub struct Places<'a> {
    segments: &'a [Mmap],
    /// Segment, offset and length of each line, by stream as the line spells it.
    streams: HashMap<&'a [u8], Vec<(usize, usize, usize)>>,
}

impl<'a> Places<'a> {
    /// Looks at every line once.
    #[must_use]
    pub fn new(segments: &'a [Mmap]) -> Self {
        const STREAM: &[u8] = b"\"stream\":\"";
        let mut streams: HashMap<_, Vec<_>> = HashMap::new();
        for (number, segment) in segments.iter().enumerate() {
            let mut offset = 0;
            map::lines(segment, |line| {
                let begin = memchr::memmem::find(line, STREAM).map_or(0, |at| at + STREAM.len());
                let name = line.get(begin..).and_then(|rest| rest.split(|b| *b == b'"').next());
                let place = (number, offset, line.len());
                streams.entry(name.unwrap_or_default()).or_default().push(place);
                offset += line.len() + 1;
            });
        }
        Self { segments, streams }
    }

    /// The streams, the log's own left out, each with its number of events.
    #[must_use]
    pub fn streams(&self) -> Vec<(String, u64)> {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let all = self.streams.iter().map(|(name, places)| (text(name), places.len() as u64));
        let mut streams: Vec<_> = all.filter(|(name, _)| name != "log").collect();
        streams.sort();
        streams
    }

    /// The last `count` lines of a stream, the oldest first; nothing but those that verify.
    pub fn last<'b>(&'b self, stream: &str, count: usize) -> impl Iterator<Item = &'b [u8]> {
        let places = self.streams.get(stream.as_bytes()).map_or(&[][..], Vec::as_slice);
        let last = places.get(places.len().saturating_sub(count)..).unwrap_or_default();
        last.iter().filter_map(|&(segment, offset, bytes)| {
            let line = self.segments.get(segment)?.get(offset..offset + bytes)?;
            map::verifies(line).then_some(line)
        })
    }
}
