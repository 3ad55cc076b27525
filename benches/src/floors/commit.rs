//! Appends to one file. Each returns when the line is on stable storage.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use super::group::{Batch, GroupCommit, Led};

/// Something to append lines to.
pub trait Appender: Sync {
    /// Appends a line.
    ///
    /// # Errors
    /// What the store behind it says; floors end the program instead.
    fn append(&self, line: &[u8]) -> Result<(), String>;
}

fn open(folder: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(folder.join("floor.jsonl")).unwrap()
}

/// `write`, then `fdatasync`, under one lock.
pub struct Alone(Mutex<File>);

impl Alone {
    /// Makes the file.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(Mutex::new(open(folder)))
    }
}

impl Appender for Alone {
    fn append(&self, line: &[u8]) -> Result<(), String> {
        let mut file = self.0.lock().unwrap();
        file.write_all(line).unwrap();
        file.sync_data().unwrap();
        Ok(())
    }
}

/// `write` alone, a line a call: the operating system writes back when it likes.
pub struct Unsynced(Mutex<File>);

impl Unsynced {
    /// Makes the file.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(Mutex::new(open(folder)))
    }
}

impl Appender for Unsynced {
    fn append(&self, line: &[u8]) -> Result<(), String> {
        self.0.lock().unwrap().write_all(line).unwrap();
        Ok(())
    }
}

/// Group commit with one lock and one condition.
#[must_use]
pub fn one_lock(folder: &Path) -> Led<impl FnMut(&Batch) -> Result<(), String> + use<>> {
    let mut file = open(folder);
    Led::new(move |batch: &Batch| {
        file.write_all(batch.bytes()).unwrap();
        file.sync_data().unwrap();
        Ok(())
    })
}

/// Group commit with two buffers: one batch is in the kernel while the next fills.
#[must_use]
pub fn two_buffers(folder: &Path) -> GroupCommit {
    let mut file = open(folder);
    GroupCommit::new(move |batch| {
        file.write_all(batch.bytes()).unwrap();
        file.sync_data().unwrap();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::shared::{Shared, Until};
    use super::*;

    type Make = fn(&Path) -> Box<dyn Appender>;

    /// Goal: a floor that lost lines would be no floor. Method: eight callers append to each, and every line is in the
    /// file once, whole.
    #[test]
    fn every_line_is_in_the_file() {
        let all: [Make; 6] = [
            |folder| Box::new(Alone::new(folder)),
            |folder| Box::new(Unsynced::new(folder)),
            |folder| Box::new(one_lock(folder)),
            |folder| Box::new(two_buffers(folder)),
            |folder| Box::new(Shared::new(folder, Until::Written)),
            |folder| Box::new(Shared::new(folder, Until::Synced)),
        ];
        for make in all {
            let home = tempfile::tempdir().unwrap();
            let floor = make(home.path());
            std::thread::scope(|scope| {
                for caller in 0..8 {
                    let floor = &floor;
                    scope.spawn(move || {
                        for line in 0..25 {
                            floor.append(format!("{caller} {line}\n").as_bytes()).unwrap();
                        }
                    });
                }
            });
            drop(floor);
            let text = std::fs::read_to_string(home.path().join("floor.jsonl")).unwrap();
            let mut found: Vec<&str> = text.lines().collect();
            found.sort_unstable();
            let mut expected: Vec<String> =
                (0..8).flat_map(|c| (0..25).map(move |l| format!("{c} {l}"))).collect();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
