//! Secrets of what is shown. The views of the log mask them unless they are told not to: what is filtered by is what was
//! said, what is printed is masked.

use annals_tools::mask::Mask;

use crate::exit::Failure;
use crate::output::Output;
use crate::settings;
use crate::sieve::Step;

/// Whether secrets are masked.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct MaskArgs {
    /// Show secrets as they were said, not as `[masked:RULE]`
    #[arg(long)]
    no_mask: bool,
}

/// What masks a view.
pub(crate) struct Masker(Option<Mask>);

impl MaskArgs {
    /// Masks all that is written from here on, unless it was told not to.
    ///
    /// # Errors
    /// As [`settings::get`].
    pub(crate) fn on(self, out: &mut Output) -> Result<(), Failure> {
        let Masker(mask) = self.masker()?;
        out.mask_with(mask);
        Ok(())
    }

    /// What masks under the settings.
    ///
    /// # Errors
    /// As [`settings::get`].
    pub(crate) fn masker(self) -> Result<Masker, Failure> {
        if self.no_mask {
            return Ok(Masker(None));
        }
        settings::get().map(|config| Masker(Some(Mask::of(config))))
    }
}

impl Masker {
    /// A step without secrets.
    pub(crate) fn mask(&self, mut step: Step) -> Step {
        if let (Some(mask), Step::Event(shown)) = (&self.0, &mut step) {
            shown.mask(mask);
        }
        step
    }
}
