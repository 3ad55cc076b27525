//! Signals and a reader that goes away. A program that is told to stop stops at once: what it appended is whole, what
//! it did not append is not there.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// From now on SIGINT and SIGTERM end the program with the exit codes of the table.
///
/// # Errors
/// Whatever the system says; the signals then end the program as they end any other.
pub(crate) fn listen() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            std::process::exit(Exit::Signal(signal).number().into());
        }
    })?;
    Ok(())
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
