//! The kernel that simulated processes share: names, files, open descriptions and locks. It is a plain value: the same
//! calls with the same seed give the same state, and a clone of it is another machine.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::call::Pid;
use super::choose::{Choose, Counting, Loss, every_loss};
use super::folder::Folder;
use super::inode::Data;

pub(super) type Ino = u64;
pub(super) type OpenId = u64;

pub(super) const ROOT: Ino = 1;

/// The state of a machine: what its processes see and what its platter holds.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(super) nodes: BTreeMap<Ino, Node>,
    pub(super) opens: BTreeMap<OpenId, Open>,
    /// Which open description holds the lock of which file.
    pub(super) locks: BTreeMap<Ino, OpenId>,
    pub(super) next: u64,
    boot: u32,
    /// How many bytes files may still grow by, all together; `None` is no limit.
    pub(super) room: Option<usize>,
    pub(super) rng: Rng,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Data),
    Folder(Folder),
}

/// An open description.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) ino: Ino,
    pub(super) process: Pid,
    pub(super) writes: bool,
    pub(super) errors_seen: u64,
}

impl Kernel {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Folder(Folder::default()))]),
            opens: BTreeMap::new(),
            locks: BTreeMap::new(),
            next: ROOT + 1,
            boot: 1,
            room: None,
            rng: Rng::with_seed(seed),
        }
    }

    /// How often the machine was started.
    #[must_use]
    pub fn boot(&self) -> u32 {
        self.boot
    }

    /// The bytes of a file as processes see them; `None` when there is no such file.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.file(self.find(name)?).ok().map(Data::bytes)
    }

    /// The names in a folder, sorted; none when there is no such folder.
    #[must_use]
    pub fn names(&self, dir: &str) -> Vec<String> {
        self.list(dir).unwrap_or_default()
    }

    /// Whether the file has data or a size that was not synced.
    #[must_use]
    pub fn is_dirty(&self, name: &str) -> bool {
        self.find(name).and_then(|ino| self.file(ino).ok()).is_some_and(Data::is_dirty)
    }

    /// The process that holds the lock of a file.
    #[must_use]
    pub fn lock_holder(&self, name: &str) -> Option<Pid> {
        self.holder_of(self.find(name)?)
    }

    /// Every file with its bytes, by name.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        self.walk("", ROOT, &mut files);
        files
    }

    /// Lets files grow by so many bytes more, all together; `None` is no limit.
    pub fn set_room(&mut self, bytes: Option<usize>) {
        self.room = bytes;
    }

    /// Changes bytes of a file behind everybody's back, as a failing disk does.
    ///
    /// # Panics
    /// When the file is absent or shorter.
    pub fn damage(&mut self, name: &str, offset: usize, bytes: &[u8]) {
        self.file_mut(self.find(name).expect("the file exists"))
            .expect("a file")
            .damage(offset, bytes);
    }

    /// Puts a file on the platter with these bytes, whatever bore the name before; open descriptions keep the old one.
    ///
    /// # Panics
    /// When the folder is absent.
    pub fn put(&mut self, name: &str, bytes: Vec<u8>) {
        let ino = self.add(Node::File(Data::at_rest(bytes)));
        let (dir, base) = self.parent(name).expect("the folder exists");
        let folder = self.folder_mut(dir).expect("a folder");
        folder.link(base, ino);
        folder.sync();
    }

    /// Takes a file away, from the platter too.
    ///
    /// # Panics
    /// When the folder is absent.
    pub fn take(&mut self, name: &str) {
        let (dir, base) = self.parent(name).expect("the folder exists");
        let folder = self.folder_mut(dir).expect("a folder");
        folder.unlink(base);
        folder.sync();
    }

    /// Another program appends to a file, without any lock.
    ///
    /// # Panics
    /// When the file is absent.
    pub fn scribble(&mut self, name: &str, bytes: &[u8]) {
        let ino = self.find(name).expect("the file exists");
        let data = self.file_mut(ino).expect("a file");
        let end = data.bytes().len();
        data.write(end, bytes);
    }

    /// One dirty piece of each file may be written back; each such write-back fails with the chance given.
    pub fn write_back(&mut self, fails: f64) {
        let rng = &mut self.rng;
        for node in self.nodes.values_mut() {
            if let Node::File(data) = node
                && rng.f64() < 0.3
            {
                let fails = rng.f64() < fails;
                data.write_back(fails, rng);
            }
        }
    }

    /// The machine after a power loss and a new boot: no process, no lock, no descriptor.
    #[must_use]
    pub fn after_power_loss(&self, loss: &Loss) -> Self {
        self.image(&mut *loss.chooser())
    }

    /// Every image that a power loss may leave, when they are at most `limit`.
    #[must_use]
    pub fn every_power_loss(&self, limit: usize) -> Option<Vec<Self>> {
        let mut counting = Counting::default();
        self.image(&mut counting);
        let losses = every_loss(&counting.options, limit)?;
        Some(losses.iter().map(|loss| self.after_power_loss(loss)).collect())
    }

    fn image(&self, choose: &mut dyn Choose) -> Self {
        let mut image = Self {
            nodes: BTreeMap::new(),
            opens: BTreeMap::new(),
            locks: BTreeMap::new(),
            next: self.next,
            boot: self.boot + 1,
            room: self.room,
            rng: self.rng.clone(),
        };
        self.copy_node(ROOT, &mut image.nodes, choose);
        image
    }

    fn copy_node(&self, ino: Ino, to: &mut BTreeMap<Ino, Node>, choose: &mut dyn Choose) {
        match self.nodes.get(&ino) {
            Some(Node::Folder(folder)) => {
                let entries = folder.after_power_loss(choose);
                for child in entries.values() {
                    if !to.contains_key(child) {
                        self.copy_node(*child, to, choose);
                    }
                }
                to.insert(ino, Node::Folder(Folder::at_rest(entries)));
            }
            Some(Node::File(data)) => {
                to.insert(ino, Node::File(data.after_power_loss(choose)));
            }
            None => {}
        }
    }

    /// The process is gone: its descriptors and their locks go with it.
    pub(super) fn end_process(&mut self, process: Pid) {
        let ids = self.opens.iter().filter(|(_, open)| open.process == process).map(|(id, _)| *id);
        for id in ids.collect::<Vec<_>>() {
            self.close(id);
        }
    }

    pub(super) fn end_all_processes(&mut self) {
        self.opens.clear();
        self.locks.clear();
    }

    /// Whether something with this chance happens now.
    pub(super) fn happens(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.rng.f64() < chance
    }

    fn walk(&self, prefix: &str, ino: Ino, files: &mut BTreeMap<String, Vec<u8>>) {
        match self.nodes.get(&ino) {
            Some(Node::Folder(folder)) => {
                for base in folder.names() {
                    let name =
                        if prefix.is_empty() { base.clone() } else { format!("{prefix}/{base}") };
                    if let Some(child) = folder.get(&base) {
                        self.walk(&name, child, files);
                    }
                }
            }
            Some(Node::File(data)) => {
                files.insert(prefix.to_owned(), data.bytes().to_vec());
            }
            None => {}
        }
    }
}
