//! What a disk holds: the lines of the log as they lie in the files, read along the chain without the engine's reader.

use annals_engine::format::control::{self, Recovered};
use annals_engine::format::scan::{Piece, Scan};
use annals_engine::format::{LOG_DIR, TORN_DIR, segment_first};
use annals_engine::id::{Crc, Seq};
use annals_engine::store::Record;

use crate::disk::Kernel;

/// The log as far as its chain leads, and what lies behind.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The lines of whole batches in order.
    pub lines: Vec<FoundLine>,
    /// Bytes that the chain does not lead over, those behind a seal left out: the segment's file name, the offset, the
    /// bytes.
    pub rest: Vec<(String, usize, Vec<u8>)>,
}

/// A line where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundLine {
    /// The segment's file name.
    pub segment: String,
    /// The offset of its first byte.
    pub offset: usize,
    /// What it says.
    pub record: Record,
}

impl FoundLine {
    /// Whether the log says it about itself.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.record.stream.as_str() == control::STREAM
    }
}

impl Found {
    /// Reads the segments of a kernel as processes see them.
    #[must_use]
    pub fn read(kernel: &Kernel) -> Self {
        let mut found = Self::default();
        let mut link = (Seq::ZERO, Crc::NONE);
        for segment in segments(kernel) {
            let bytes = kernel.bytes(&path(&segment)).unwrap_or_default();
            let begin = found.lines.len();
            let mut end = found.read_segment(&segment, bytes, &mut link);
            end = found.drop_part_of_batch(begin, end, &mut link);
            let sealed = found.lines.last().is_some_and(|line| {
                line.segment == segment && line.record.kind.as_str() == control::SEALED
            });
            if end < bytes.len() && !sealed {
                found.rest.push((segment, end, bytes[end..].to_vec()));
            }
        }
        found
    }

    /// What recovery says that it took away.
    #[must_use]
    pub fn recovered(&self) -> Vec<Recovered> {
        let of_kind = |line: &&FoundLine| line.record.kind.as_str() == control::RECOVERED;
        let read = |line: &FoundLine| line.record.data.read().expect("a payload of log.recovered");
        self.lines.iter().filter(of_kind).map(read).collect()
    }

    /// Adds the lines that continue the chain; returns where they end.
    fn read_segment(&mut self, segment: &str, bytes: &[u8], link: &mut (Seq, Crc)) -> usize {
        let mut end = 0;
        for (offset, len, piece) in Scan::new(bytes) {
            let Piece::Line(line) = piece else { break };
            if (line.fields.seq, line.fields.prev) != (link.0.next(), link.1) {
                break;
            }
            let record = Record::from_line(&line).expect("the record of a line");
            *link = (record.seq, record.crc);
            self.lines.push(FoundLine { segment: segment.to_owned(), offset, record });
            end = offset + len;
        }
        end
    }

    /// Takes back the lines of a batch that is not whole.
    fn drop_part_of_batch(&mut self, begin: usize, end: usize, link: &mut (Seq, Crc)) -> usize {
        let Some((index, count)) = self.lines.last().and_then(|line| line.record.batch) else {
            return end;
        };
        if index == count {
            return end;
        }
        let first = self.lines.len() - (index as usize).min(self.lines.len() - begin);
        let end = self.lines[first].offset;
        self.lines.truncate(first);
        *link = self.lines.last().map_or((Seq::ZERO, Crc::NONE), |l| (l.record.seq, l.record.crc));
        end
    }
}

/// The file names of the segments in order.
#[must_use]
pub fn segments(kernel: &Kernel) -> Vec<String> {
    kernel.names(LOG_DIR).into_iter().filter(|name| segment_first(name).is_some()).collect()
}

/// The path of a segment by its file name.
#[must_use]
pub fn path(segment: &str) -> String {
    format!("{LOG_DIR}/{segment}")
}

/// What lies in the folder of torn bytes, by path.
#[must_use]
pub fn torn(kernel: &Kernel) -> Vec<(String, Vec<u8>)> {
    let bytes = |path: &str| kernel.bytes(path).unwrap_or_default().to_vec();
    let paths = kernel.names(TORN_DIR).into_iter().map(|name| format!("{TORN_DIR}/{name}"));
    paths.map(|path| (path.clone(), bytes(&path))).collect()
}
