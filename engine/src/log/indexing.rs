//! Writing indexes: by appending processes alone, after an append is done and those taken along are answered, with no lock
//! of the store held; who led waits for it. A process that dies in the middle leaves a temporary file and the same answers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::format::LOG_DIR;
use crate::id::Seq;
use crate::storage::{Access, Mapping, write_full};

use super::index::{
    Builder, Gathered, HEADS_FILE, Heads, Index, Stretch, part_name, part_start, read, whole,
    whole_name,
};
use super::{Writer, locked};

impl Writer {
    /// Writes the indexes that are due. What fails is left for the next append: nothing depends on an index.
    pub(super) fn keep_indexes(&self) {
        if !self.index_due.swap(false, Ordering::SeqCst)
            || self.indexing.swap(true, Ordering::SeqCst)
        {
            return;
        }
        let _ = self.write_due();
        self.closed.fetch_add(1, Ordering::SeqCst);
        self.indexing.store(false, Ordering::SeqCst);
    }

    fn write_due(&self) -> Result<()> {
        let (built, in_parts) = {
            let mut side = locked(&self.append);
            let end = side.tail.end;
            let sealed = side.tail.sealed;
            let known = side.tail.known_mut();
            // A sealed segment is closed as a whole when its successor is made.
            if !sealed && known.recent_bytes(&end) >= self.view.options.index_bytes {
                known.close(&end, false);
            }
            (known.built(), known.in_parts())
        };
        for stretch in built {
            self.write_index(&stretch.0, &stretch.1)?;
        }
        for segment in in_parts {
            self.write_whole(segment)?;
        }
        let material = locked(&self.append).tail.known_mut().material();
        material.map_or(Ok(()), |(heads, lacking)| self.write_heads(heads.as_deref(), &lacking))
    }

    /// Writes a table of heads: what the one before it knows, and the segments that it lacks.
    fn write_heads(&self, before: Option<&Heads>, lacking: &[Stretch]) -> Result<()> {
        let indexes = lacking.iter().map(|stretch| self.index_of(stretch)).collect::<Result<_>>();
        let indexes: Vec<Index> = indexes?;
        let gather = || {
            let mut gathered = match before {
                Some(before) => Gathered::from_table(before)?,
                None => Gathered::default(),
            };
            indexes.iter().try_for_each(|index| gathered.add(index))?;
            gathered.encode(self.id)
        };
        let Some(bytes) = gather() else {
            if before.is_some_and(Heads::is_damaged) {
                locked(&self.append).tail.known().drop_heads();
                self.index_due.store(true, Ordering::SeqCst);
            }
            return Ok(());
        };
        if let Some(heads) = Heads::new(self.put(HEADS_FILE, &bytes)?, self.id) {
            locked(&self.append).tail.known_mut().take_table(heads);
        }
        Ok(())
    }

    /// The index of a segment with its successor, written anew when there is none that is whole.
    fn index_of(&self, stretch: &Stretch) -> Result<Index> {
        let next = stretch.last.next();
        if let Some(index) = whole(&*self.storage, self.id, stretch.segment, next)
            && Gathered::default().add(&index).is_some()
        {
            return Ok(index);
        }
        let (stretch, builder) = read(&*self.storage, stretch)?;
        self.write_index(&stretch, &builder)?;
        whole(&*self.storage, self.id, stretch.segment, next).ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "an index is not what was written")
                .path(self.storage.display(&format!("{LOG_DIR}/{}", whole_name(stretch.segment))))
        })
    }

    /// Puts one index in the place of the parts of a segment that is full.
    fn write_whole(&self, segment: Seq) -> Result<()> {
        let Some(stretch) = locked(&self.append).tail.known().outline(segment) else {
            return Ok(());
        };
        let (stretch, builder) = read(&*self.storage, &stretch)?;
        self.write_index(&stretch, &builder)
    }

    fn write_index(&self, stretch: &Stretch, builder: &Builder) -> Result<()> {
        let is_whole = stretch.start == 0 && stretch.sealed || stretch.broken;
        let name = if is_whole {
            whole_name(stretch.segment)
        } else {
            part_name(stretch.segment, stretch.start)
        };
        let map = self.put(&name, &builder.encode(stretch))?;
        if let Some(index) = Index::new(map).filter(|index| index.stretch == *stretch) {
            locked(&self.append).tail.known_mut().replace(index);
        }
        if is_whole {
            self.remove_parts(stretch.segment);
        }
        Ok(())
    }

    /// Puts a file in the place of the one of that name, and maps it.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<Mapping> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let path = format!("{LOG_DIR}/{name}");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{path}.{}-{number}.new", std::process::id());
        let write = || {
            let file = self.storage.open(&temporary, Access::CreateNew)?;
            write_full(&*file, bytes, 0)?;
            self.storage.rename(&temporary, &path)?;
            self.storage.open(&path, Access::Read)?.map()
        };
        write().map_err(|e| {
            // A file that nobody looks for.
            let _ = self.storage.remove(&temporary);
            Error::io("cannot write an index", e).path(self.storage.display(&path))
        })
    }

    fn remove_parts(&self, segment: Seq) {
        for name in self.storage.list(LOG_DIR).unwrap_or_default() {
            if part_start(&name, segment).is_some() {
                // One that stays is not looked for any more.
                let _ = self.storage.remove(&format!("{LOG_DIR}/{name}"));
            }
        }
    }
}
