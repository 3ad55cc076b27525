//! The memory map of files that no longer change where they are looked at: the only `unsafe` of the project.
#![expect(unsafe_code, reason = "a memory map cannot be made without it")]

use std::fs;
use std::io;
use std::ops::Deref;

/// The bytes of a whole file.
#[derive(Debug)]
pub enum Mapping {
    /// Mapped by the operating system.
    Mapped(memmap2::Mmap),
    /// Held in memory by a storage that has no files.
    Held(Vec<u8>),
}

/// What a mapping is about to be read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// All of it, from its start to its end.
    Whole,
    /// Here and there.
    Points,
}

impl Mapping {
    /// Tells the operating system, which may then read ahead, or not. It changes no answer, and a system that takes no
    /// advice is none the worse for it.
    pub fn advise(&self, advice: Advice) {
        let Self::Mapped(map) = self else { return };
        let _ = match advice {
            Advice::Whole => map.advise(memmap2::Advice::Sequential),
            Advice::Points => map.advise(memmap2::Advice::Random),
        };
        #[cfg(target_os = "linux")]
        if advice == Advice::Whole {
            // One call for all pages, where touching them one after the other faults for every few.
            let _ = map.advise(memmap2::Advice::PopulateRead);
        }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Held(bytes) => bytes,
        }
    }
}

/// Maps a file as long as it is now; an empty one gives no mapping but no bytes.
pub(super) fn map(file: &fs::File) -> io::Result<Mapping> {
    if file.metadata()?.len() == 0 {
        return Ok(Mapping::Held(Vec::new()));
    }
    // SAFETY: the log maps three kinds of files. Derived files are written under another name, renamed, and never
    // written or cut again. A segment that ends with its seal is never written or cut again. Of the active segment only
    // bytes below the durable floor are looked at: recovery writes and cuts what lies behind the floor alone, so that
    // the pages that are looked at stay and hold what they held, whatever becomes of those behind. Another program of
    // the same user that truncates such a file can fault this process; the documentation of the store says so, and no
    // safe call can rule it out.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Mapping::Mapped(map))
}
