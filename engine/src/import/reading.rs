//! The reading of one file of a part: where its records go, and what is told of them, whatever their format is.

use super::damage::DamageClass;
use super::pursuit::Tail;
use super::records::Flaw;
use super::session::Ongoing;
use super::story::{Identity, Story};
use crate::error::Result;
use crate::session::event::{ImportedRecord, Source};

/// A file of a part that is read.
pub(crate) struct Reading<'t, 'o, 's> {
    pub(crate) ongoing: &'t mut Ongoing<'o, 's>,
    pub(crate) story: &'t mut Story,
    /// The file's name in events.
    pub(crate) file: &'t str,
}

/// Whether a record is one that the part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is new.
    No,
    /// It is there, byte for byte.
    Same,
    /// Another record has its id; it goes by its place from now on.
    OtherOfItsId,
}

impl Reading<'_, '_, '_> {
    /// Whether the part has a record already. One that is there is told; one whose id another has gets one of its own.
    pub(crate) fn know(&mut self, identity: &mut Identity, source: &Source) -> Result<Known> {
        match self.story.has(identity) {
            Some(true) => {
                let flaw = self.story.repeated(&identity.range);
                self.tell(flaw)?;
                Ok(Known::Same)
            }
            Some(false) => {
                let (ordinal, sha256) = (self.story.records(), &source.sha256);
                identity.id = self.ongoing.id(ImportedRecord::Ordinal { ordinal, sha256 }, "");
                Ok(Known::OtherOfItsId)
            }
            None => Ok(Known::No),
        }
    }

    /// Tells what is odd about a record that was taken.
    pub(crate) fn note(
        &mut self,
        class: DamageClass,
        identity: &Identity,
        detail: String,
    ) -> Result<()> {
        let (offset, bytes) = (identity.range.start, identity.range.end - identity.range.start);
        self.flaw(Flaw { class, offset, bytes, recovered: 1, detail: detail.into() })
    }

    /// Tells what is wrong at some place, behind what is still to be told of the records before it.
    pub(crate) fn flaw(&mut self, flaw: Flaw) -> Result<()> {
        self.settle()?;
        self.ongoing.flaw(self.file, flaw)
    }

    /// Tells of a run of records that ends here.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let settled = self.story.settle();
        self.tell(settled)
    }

    pub(crate) fn tell(&mut self, flaw: Option<Flaw>) -> Result<()> {
        match flaw {
            Some(flaw) => self.ongoing.flaw(self.file, flaw),
            None => Ok(()),
        }
    }

    /// The file is read; with the last one the part is.
    pub(crate) fn end(mut self, last_file: bool, bytes: u64) -> Result<()> {
        self.settle()?;
        if last_file && self.ongoing.shared.tail() == Tail::Final {
            for odd in self.story.end(bytes) {
                self.ongoing.flaw(self.file, odd)?;
            }
        }
        Ok(())
    }
}
