//! Signals and a reader that goes away. A program that is told to stop stops at once: what it appended is whole, what
//! it did not append is not there.

use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// What is done at the first signal instead of ending, and which signal it was.
static WISH: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();
static CAME: OnceLock<i32> = OnceLock::new();

/// From now on SIGINT and SIGTERM end the program with the exit codes of the table. With [`instead`] the first one does
/// not, and the second does.
///
/// # Errors
/// Whatever the system says; the signals then end the program as they end any other.
pub(crate) fn listen() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match WISH.get() {
                Some(wish) if CAME.set(signal).is_ok() => wish(),
                _ => std::process::exit(Exit::Signal(signal).number().into()),
            }
        }
    })?;
    Ok(())
}

/// Does this at the first signal: for a verb that has something to bring to an end. It then ends by itself, with
/// [`came`]. The first caller counts.
pub(crate) fn instead(wish: impl Fn() + Send + Sync + 'static) {
    WISH.get_or_init(|| Box::new(wish));
}

/// The signal that came and did not end the program.
pub(crate) fn came() -> Option<i32> {
    CAME.get().copied()
}

/// Ends the program, without a word, as soon as whoever reads standard output is gone: a follower on a quiet log would
/// otherwise not find out before the next event. Does nothing for files and terminals.
///
/// # Errors
/// Whatever the system says.
pub(crate) fn end_when_unread() -> io::Result<()> {
    let stdout = io::stdout();
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&stdout)?.st_mode);
    if !kind.is_fifo() && !kind.is_socket() {
        return Ok(());
    }
    std::thread::Builder::new().name("reader".to_owned()).spawn(move || {
        let gone = PollFlags::ERR | PollFlags::HUP;
        loop {
            let mut watched = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
            let polled = rustix::event::poll(&mut watched, None);
            if polled.is_ok() && watched.iter().any(|fd| fd.revents().intersects(gone)) {
                std::process::exit(Exit::Ok.number().into());
            }
        }
    })?;
    Ok(())
}
