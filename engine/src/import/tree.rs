//! Where transcripts are read from: a folder of the disk, or one that lies in memory. Nothing here writes, locks or
//! follows a link out of what was named.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::clock::Timestamp;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file, or a link to one that lies in the same folder or below.
    File,
    /// A folder.
    Folder,
    /// A link to a file outside the folder that it lies in: it is not followed.
    Link,
    /// A link to a folder, a device, a socket: nothing that is walked into or read.
    Other,
}

/// A file or folder of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub kind: NodeKind,
    /// How long it is, in bytes; 0 for what is no file.
    pub bytes: u64,
    /// When it was last changed, as far as that is known.
    pub modified: Option<Timestamp>,
}

impl Node {
    /// The last part of its path, where that is text.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// A file that is only read, from any place.
pub trait SourceFile: Read + Seek {}

impl<F: Read + Seek> SourceFile for F {}

/// A tree of files that is only read.
pub trait SourceTree {
    /// What the path stands for; a link at the path itself is followed.
    ///
    /// # Errors
    /// `NotFound` when there is nothing; whatever the system says.
    fn stat(&self, path: &Path) -> io::Result<Node>;

    /// What a folder holds, sorted by name.
    ///
    /// # Errors
    /// `NotFound` when there is no such folder; whatever the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<Node>>;

    /// Opens a file for reading from its beginning.
    ///
    /// # Errors
    /// `NotFound` when there is no such file; whatever the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn SourceFile + '_>>;
}

/// The disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskTree;

impl SourceTree for DiskTree {
    fn stat(&self, path: &Path) -> io::Result<Node> {
        let meta = fs::metadata(path)?;
        let kind = match (meta.is_file(), meta.is_dir()) {
            (true, _) => NodeKind::File,
            (_, true) => NodeKind::Folder,
            _ => NodeKind::Other,
        };
        Ok(node(path.to_path_buf(), kind, &meta))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Node>> {
        let mut nodes = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let link = entry.file_type()?.is_symlink();
            // A link that leads nowhere is nothing that could be read, and no reason to stop.
            let Ok(mut node) = self.stat(&entry.path()) else { continue };
            if link && node.kind == NodeKind::Folder {
                node.kind = NodeKind::Other;
            }
            if link && node.kind == NodeKind::File && leads_out(folder, &node.path) {
                (node.kind, node.bytes) = (NodeKind::Link, 0);
            }
            nodes.push(node);
        }
        nodes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(nodes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn SourceFile + '_>> {
        // A pipe that nobody writes to would be waited for, a device read for ever.
        if self.stat(path)?.kind != NodeKind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no ordinary file"));
        }
        Ok(Box::new(fs::File::open(path)?))
    }
}

/// Whether a link in a folder leads to a file outside it; one that cannot be followed to its end does.
fn leads_out(folder: &Path, link: &Path) -> bool {
    match (folder.canonicalize(), link.canonicalize()) {
        (Ok(folder), Ok(file)) => !file.starts_with(folder),
        _ => true,
    }
}

/// What is said of a link that is not followed.
pub(crate) const LEADS_OUT: &str = "this is a link that leads out of its folder, and is not followed: name the file itself to import it";

fn node(path: PathBuf, kind: NodeKind, meta: &fs::Metadata) -> Node {
    let bytes = if kind == NodeKind::File { meta.len() } else { 0 };
    let since = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified = since.map(|since| Timestamp::EPOCH.plus(since));
    Node { path, kind, bytes, modified }
}

/// Files in memory: a sample that ships with the program, or a test.
#[derive(Clone, Debug, Default)]
pub struct MemoryTree(BTreeMap<PathBuf, Vec<u8>>);

impl MemoryTree {
    /// A tree of these files.
    #[must_use]
    pub fn new<P: Into<PathBuf>, B: Into<Vec<u8>>>(
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Self {
        Self(files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect())
    }

    /// Puts a file, in place of the one that bears the path.
    pub fn put(&mut self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), bytes.into());
    }

    /// Takes a file away.
    pub fn remove(&mut self, path: &Path) {
        self.0.remove(path);
    }

    fn file(path: &Path, bytes: &[u8]) -> Node {
        let bytes = bytes.len() as u64;
        Node { path: path.to_path_buf(), kind: NodeKind::File, bytes, modified: None }
    }
}

impl SourceTree for MemoryTree {
    fn stat(&self, path: &Path) -> io::Result<Node> {
        if let Some(bytes) = self.0.get(path) {
            return Ok(Self::file(path, bytes));
        }
        if self.0.keys().any(|file| file.starts_with(path)) {
            let kind = NodeKind::Folder;
            return Ok(Node { path: path.to_path_buf(), kind, bytes: 0, modified: None });
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Node>> {
        let mut nodes: Vec<Node> = Vec::new();
        for (file, bytes) in &self.0 {
            let Ok(rest) = file.strip_prefix(folder) else { continue };
            let mut parts = rest.components();
            let Some(first) = parts.next() else { continue };
            let path = folder.join(first);
            if parts.next().is_none() {
                nodes.push(Self::file(&path, bytes));
            } else if nodes.iter().all(|node| node.path != path) {
                nodes.push(Node { path, kind: NodeKind::Folder, bytes: 0, modified: None });
            }
        }
        if nodes.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        nodes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(nodes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn SourceFile + '_>> {
        match self.0.get(path) {
            Some(bytes) => Ok(Box::new(io::Cursor::new(bytes.as_slice()))),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: both trees say the same of the same files. Method: a few files in memory and in a temporary folder,
    /// listed and read through the trait.
    #[test]
    fn the_trees_agree() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("b.txt", "bb"), ("a/c.txt", "c"), ("a/d/e.txt", "")];
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            #[expect(clippy::disallowed_methods, reason = "the test makes its own source")]
            fs::write(path, text).unwrap();
        }
        let memory = MemoryTree::new(files.map(|(path, text)| (folder.path().join(path), text)));
        let trees: [&dyn SourceTree; 2] = [&DiskTree, &memory];
        let told = trees.map(|tree| {
            let mut told = Vec::new();
            for at in ["", "a", "a/d", "b.txt", "none"] {
                let path = folder.path().join(at);
                let names = |nodes: Vec<Node>| {
                    nodes.iter().map(|n| format!("{} {:?}", n.name(), n.kind)).collect::<Vec<_>>()
                };
                told.push(format!("{:?}", tree.list(&path).map(names).unwrap_or_default()));
                told.push(format!("{:?}", tree.stat(&path).map(|n| (n.kind, n.bytes)).ok()));
                let mut text = String::new();
                let read = tree.open(&path).and_then(|mut file| file.read_to_string(&mut text));
                told.push(format!("{:?} {text}", read.is_ok()));
            }
            told
        });
        assert_eq!(told[0], told[1]);
    }

    /// Goal: a link to a folder is not walked into, so that a walk ends, and one to a file outside is told apart. Method:
    /// a folder that links to itself, to nothing, to a file of its own and to one elsewhere.
    #[test]
    fn links() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("self")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("gone")).unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
        let file = folder.path().join("own");
        #[expect(clippy::disallowed_methods, reason = "the test makes its own source")]
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink("own", folder.path().join("alias")).unwrap();
        let nodes = DiskTree.list(folder.path()).unwrap();
        assert_eq!(
            nodes.iter().map(|n| (n.name(), n.kind)).collect::<Vec<_>>(),
            [
                ("alias", NodeKind::File),
                ("out", NodeKind::Link),
                ("own", NodeKind::File),
                ("self", NodeKind::Other),
            ]
        );
    }
}
