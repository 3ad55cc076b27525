//! The index by itself: what was added is found, what was not is not, and no flipped bit is believed.

use super::*;
use crate::format::{self, Fields};
use crate::id::Version;
use crate::storage::Mapping;

fn id(n: u64) -> EventId {
    EventId::derived("test", "index", &n.to_string())
}

/// An index over `count` lines of seven streams.
fn sample(count: u64) -> (Stretch, Vec<u8>) {
    let mut builder = Builder::default();
    let mut offset = 0;
    for n in 0..count {
        let fields = Fields {
            seq: Seq(n + 11),
            time: Timestamp::from_millis(1),
            durable: Seq(0),
            prev: Crc(0),
            stream: format!("s{}", n % 7).into(),
            version: Version(n / 7 + 1),
            kind: if n % 3 == 0 { "turn" } else { "x.test.said" },
            id: id(n),
            batch: None,
            cause: None,
            flow: None,
            blob: None,
            data: "{}",
        };
        let mut line = Vec::new();
        format::encode(&fields, &mut line);
        builder.add(
            Seq(10),
            offset,
            line.len() as u64,
            (&format::decode(&line).unwrap().fields).into(),
        );
        offset += line.len() as u64;
    }
    let stretch = Stretch {
        store: StoreId(uuid::Uuid::from_u128(7)),
        segment: Seq(11),
        start: 0,
        end: offset,
        before: Seq(10),
        before_crc: Some(Crc(5)),
        last: Seq(10 + count),
        last_crc: Crc(9),
        last_time: Timestamp::from_millis(1),
        sealed: true,
        broken: false,
    };
    (stretch, builder.encode(&stretch))
}

fn index(bytes: Vec<u8>) -> Option<Index> {
    Index::new(Mapping::Held(bytes))
}

/// Everything that can be asked, as text.
fn answers(index: &Index, count: u64) -> String {
    let mut out = format!("{:?}", index.stretch);
    for n in 0..count + 3 {
        out += &format!("{:?} {:?}", index.rows_like(id(n)), index.line(u32::try_from(n).unwrap()));
    }
    for n in 0..9 {
        let name = format!("s{n}");
        out += &format!("{:?} {:?}", index.version(&name), index.rows_of(Key::Stream(&name)));
    }
    out + &format!("{:?}{:?}", index.rows_of(Key::Type("turn")), index.rows_of(Key::Type("none")))
}

/// What was added is found again by row, id, stream and type.
#[test]
fn finds() {
    let (stretch, bytes) = sample(500);
    let index = index(bytes).unwrap();
    assert_eq!(index.stretch, stretch);
    assert_eq!(index.version("s3"), Some(Version(71)));
    assert_eq!(index.version("s9"), None);
    assert_eq!(index.rows_like(id(123)), [123]);
    assert!(index.rows_like(id(500)).is_empty());
    let rows = index.rows_of(Key::Stream("s3"));
    assert_eq!((rows.len(), rows[0], rows[1]), (71, 3, 10));
    assert_eq!(index.rows_of(Key::Type("turn")).len(), 167);
    assert_eq!(index.line(0).unwrap().0, 0);
    assert!(index.line(499).is_some() && index.line(500).is_none());
}

/// With any bit flipped the index is refused, or found to be damaged when it is used, or answers as before (a page that
/// no answer needs); and a shortened one is refused.
#[test]
fn no_flip_is_believed() {
    let count = 15;
    let (_, bytes) = sample(count);
    let expect = answers(&index(bytes.clone()).unwrap(), count);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Some(index) = index(flipped) {
            let got = answers(&index, count);
            assert!(index.is_damaged() || got == expect, "bit {bit}");
        }
    }
    for len in 0..bytes.len() {
        assert!(index(bytes[..len].to_vec()).is_none(), "{len}");
    }
}

/// A table of heads over three segments of so many streams each, the second one broken.
fn table(streams: u64) -> Vec<u8> {
    let mut indexes = Vec::new();
    for segment in 0..3 {
        let mut builder = Builder::default();
        for n in 0..streams {
            builder.raise(&format!("s{}", n + segment * streams / 2), Version(n + 1));
        }
        let before = Seq(10 * segment);
        let stretch = Stretch {
            segment: before.next(),
            before,
            last: Seq(before.0 + 10),
            broken: segment == 1,
            ..sample(1).0
        };
        indexes.push(Index::new(Mapping::Held(builder.encode(&stretch))).unwrap());
    }
    let mut gathered = Gathered::default();
    indexes.iter().for_each(|index| gathered.add(index).unwrap());
    gathered.encode(sample(1).0.store).unwrap()
}

fn heads(bytes: Vec<u8>) -> Option<Heads> {
    Heads::new(Mapping::Held(bytes), sample(1).0.store)
}

/// Everything that can be asked of a table, as text.
fn heads_of(table: &Heads, streams: u64) -> String {
    let heads = (0..streams * 3).map(|n| table.head(&format!("s{n}")));
    format!("{:?} {:?}", table.segments(), heads.collect::<Vec<_>>())
}

/// A stream stands where the last segment says that has it, with no lower version than one before, and a table made of one and the segments behind it is the one
/// made of all.
#[test]
fn a_table_of_heads_finds() {
    let table = heads(table(300)).unwrap();
    let segments: Vec<_> = table.segments().iter().map(|known| known.stretch.segment.0).collect();
    assert_eq!(segments, [1, 11, 21]);
    for (stream, expect) in
        [("s0", Some((1, 10))), ("s150", Some((151, 20))), ("s599", Some((300, 30)))]
    {
        let head = table.head(stream).map(|head| (head.version.0, head.seq.0));
        assert_eq!(head, expect, "{stream}");
    }
    assert_eq!(table.head("s600"), None);
    let store = sample(1).0.store;
    let again = Gathered::from_table(&table).unwrap().encode(store).unwrap();
    assert_eq!(again, self::table(300));
}

/// With any bit flipped a table is refused, or found damaged when that part of it is used; and a shortened one is refused.
#[test]
fn no_flip_in_a_table_is_believed() {
    let bytes = table(60);
    assert!(bytes.len() > PAGE + HEADER, "more than one page");
    let expect = heads_of(&heads(bytes.clone()).unwrap(), 60);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Some(table) = heads(flipped) {
            let got = heads_of(&table, 60);
            assert!(table.is_damaged() && Gathered::from_table(&table).is_none(), "bit {bit}");
            assert!(got != expect, "bit {bit}");
        }
    }
    for len in 0..bytes.len() {
        assert!(heads(bytes[..len].to_vec()).is_none(), "{len}");
    }
}
