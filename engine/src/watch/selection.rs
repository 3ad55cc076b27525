//! Which files a set of globs means. It reads no disk: a path is taken as it is spelled.
//!
//! `*`, `?` and `[…]` stand for text within one part of a path, `**` for any number of parts, `{a,b}` for either. A pattern
//! without any of these is a file, or all that lies below a folder of that name.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::error::{Error, Result};

/// Folders that no pattern reaches into, unless it names one outright.
const FOLDERS_LEFT_OUT: [&str; 6] =
    [".git", "node_modules", ".venv", "venv", "__pycache__", "target"];

/// A set of files.
#[derive(Clone, Debug)]
pub struct Selection {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
    /// The store's own folder.
    store: Option<PathBuf>,
}

/// A pattern: what it says literally, and what of a path behind that fits.
#[derive(Clone, Debug)]
struct Pattern {
    base: PathBuf,
    rest: GlobMatcher,
    /// The most parts behind the base that fit; `None` for any number.
    depth: Option<usize>,
    /// Whether nothing is left out of it, as of one that names a file.
    outright: bool,
}

impl Selection {
    /// The files that fit one of `paths` and none of `ignore` and `outputs`. Patterns go from `folder` on; one of the latter
    /// two that has no `/` fits at any depth.
    ///
    /// # Errors
    /// `InvalidInput` for a pattern that is no glob.
    pub fn new(
        folder: &Path,
        paths: &[String],
        ignore: &[String],
        outputs: &[String],
    ) -> Result<Self> {
        let mut wanted = Vec::new();
        for pattern in paths {
            wanted.extend(Pattern::all(folder, pattern)?);
        }
        let mut unwanted = Vec::new();
        for pattern in ignore.iter().chain(outputs) {
            if pattern.contains('/') {
                unwanted.extend(Pattern::all(folder, pattern)?);
            } else {
                for text in [format!("**/{pattern}"), format!("**/{pattern}/**")] {
                    unwanted.extend(Pattern::all(folder, &text)?);
                }
            }
        }
        Ok(Self { wanted, unwanted, store: None })
    }

    /// The same without what lies in the store's folder.
    #[must_use]
    pub fn without_store(mut self, folder: PathBuf) -> Self {
        self.store = Some(folder);
        self
    }

    /// The same with what patterns do not reach into otherwise: folders of version control and of packages, and files that
    /// editors make.
    #[must_use]
    pub fn leaving_nothing_out(mut self) -> Self {
        self.wanted.iter_mut().for_each(|pattern| pattern.outright = true);
        self
    }

    /// Whether a file belongs to it.
    #[must_use]
    pub fn selects(&self, path: &Path) -> bool {
        !self.is_unwanted(path)
            && self.wanted.iter().any(|pattern| {
                pattern.fits(path) && (pattern.outright || !pattern.leaves_out(path))
            })
    }

    /// Whether a file that belongs to it may lie in a folder, or in one below.
    #[must_use]
    pub fn enters(&self, folder: &Path) -> bool {
        !self.is_unwanted(folder)
            && self.wanted.iter().any(|pattern| {
                let above = pattern.base.starts_with(folder);
                let taken = || pattern.outright || !pattern.leaves_out(folder);
                above || pattern.reaches(folder) && taken()
            })
    }

    /// The folders below which all of it lies. They need not be there.
    #[must_use]
    pub fn roots(&self) -> Vec<&Path> {
        let bases = || self.wanted.iter().map(|pattern| pattern.base.as_path());
        let mut roots: Vec<&Path> = bases()
            .filter(|base| !bases().any(|other| other != *base && base.starts_with(other)))
            .collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    fn is_unwanted(&self, path: &Path) -> bool {
        self.store.as_ref().is_some_and(|store| path.starts_with(store))
            || self.unwanted.iter().any(|pattern| path.ancestors().any(|part| pattern.fits(part)))
    }
}

impl Pattern {
    /// What one text says: a path that may be a file or a folder says two.
    fn all(folder: &Path, text: &str) -> Result<Vec<Self>> {
        let parts: Vec<&str> = text.split('/').collect();
        let literal = parts.iter().take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
        let said = literal.count();
        let base =
            plain(&folder.join(parts.iter().take(said).copied().collect::<Vec<_>>().join("/")));
        // An absolute pattern begins with an empty part, which joining would lose.
        let base = if text.starts_with('/') {
            plain(&Path::new("/").join(parts.iter().take(said).copied().collect::<PathBuf>()))
        } else {
            base
        };
        let rest: Vec<&str> = parts.iter().skip(said).copied().filter(|p| !p.is_empty()).collect();
        if !rest.is_empty() {
            let open = rest.iter().any(|part| part.contains("**") || part.contains('{'));
            let depth = (!open).then_some(rest.len());
            return Ok(vec![Self::new(base, &rest.join("/"), depth, false)?]);
        }
        let below = Self::new(base.clone(), "**", None, false)?;
        let (Some(parent), Some(name)) = (base.parent(), base.file_name()) else {
            return Ok(vec![below]);
        };
        let name = globset::escape(&name.to_string_lossy());
        Ok(vec![Self::new(parent.to_path_buf(), &name, Some(1), true)?, below])
    }

    fn new(base: PathBuf, rest: &str, depth: Option<usize>, outright: bool) -> Result<Self> {
        let glob = GlobBuilder::new(rest).literal_separator(true).build().map_err(|e| {
            Error::invalid(format!("{rest:?} is no glob"))
                .hint("* stands for text within a name, ** for folders, {a,b} for either")
                .caused_by(e)
        })?;
        Ok(Self { base, rest: glob.compile_matcher(), depth, outright })
    }

    fn behind<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.base).ok()
    }

    fn fits(&self, path: &Path) -> bool {
        let behind = self.behind(path).filter(|rest| !rest.as_os_str().is_empty());
        behind.is_some_and(|rest| self.rest.is_match(rest))
    }

    /// Whether something that fits may lie below a folder.
    fn reaches(&self, folder: &Path) -> bool {
        self.behind(folder)
            .is_some_and(|rest| self.depth.is_none_or(|depth| rest.components().count() < depth))
    }

    /// Whether a path leads into what is left out, or is a file that an editor makes and takes away.
    fn leaves_out(&self, path: &Path) -> bool {
        let rest = self.behind(path).unwrap_or(path);
        let mut names = rest.components().filter_map(|part| part.as_os_str().to_str());
        names.any(|name| FOLDERS_LEFT_OUT.contains(&name) || is_an_editors(name))
    }
}

/// Whether a name is one that editors give to files that vanish again.
fn is_an_editors(name: &str) -> bool {
    let ends = [".swp", ".swx", ".swo", "~"];
    let hashes = name.len() > 1 && name.starts_with('#') && name.ends_with('#');
    name == "4913" || ends.iter().any(|end| name.ends_with(end)) || name.starts_with(".#") || hashes
}

/// A path without `.` and `..`, as it is spelled.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(paths: &[&str], ignore: &[&str], outputs: &[&str]) -> Selection {
        let [paths, ignore, outputs] = [paths, ignore, outputs]
            .map(|all| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        Selection::new(Path::new("/c/[x]"), &paths, &ignore, &outputs).unwrap()
    }

    /// Goal: a pattern means the files that it says, from its folder on, whatever the folder is called. Method: patterns
    /// of each sort, and paths that fit and that do not.
    #[test]
    fn what_patterns_mean() {
        for (pattern, path, expect) in [
            ("notes/**/*.md", "/c/[x]/notes/a.md", true),
            ("notes/**/*.md", "/c/[x]/notes/b/c/a.md", true),
            ("notes/**/*.md", "/c/[x]/notes/a.txt", false),
            ("*.md", "/c/[x]/a.md", true),
            ("*.md", "/c/[x]/b/a.md", false),
            ("./notes", "/c/[x]/notes", true),
            ("notes", "/c/[x]/notes/b/a", true),
            ("notes", "/c/[x]/notes2", false),
            ("../d/{a,b}/*", "/c/d/b/x", true),
            ("/abs/*.rs", "/abs/x.rs", true),
            ("/abs/x.rs", "/abs/x.rs", true),
            ("**", "/c/[x]/node_modules/a/b.js", false),
            ("**", "/c/[x]/a.md~", false),
            ("**", "/c/[x]/4913", false),
            ("target/report.json", "/c/[x]/target/report.json", true),
            ("a~", "/c/[x]/a~", true),
        ] {
            let selection = selection(&[pattern], &[], &[]);
            assert_eq!(selection.selects(Path::new(path)), expect, "{pattern} {path}");
            for folder in Path::new(path).ancestors().skip(1).filter(|_| expect) {
                assert!(selection.enters(folder), "{pattern} does not enter {}", folder.display());
            }
        }
        let all = selection(&["**"], &["*.log", "out/"], &["build"]);
        let all = all.without_store("/c/[x]/store".into());
        for path in ["a/b.log", "out/x", "x/build/y/z", "build", "store/log/1", "d.log/e"] {
            assert!(!all.selects(&Path::new("/c/[x]").join(path)), "{path}");
        }
        assert!(all.selects(Path::new("/c/[x]/x/out/y")));
    }

    /// Goal: no folder is entered in vain that may be big. Method: folders beside, below and above what is meant.
    #[test]
    fn what_is_entered() {
        let flat = selection(&["notes/*.md", "notes/x/y.md"], &[], &[]);
        assert_eq!(flat.roots(), [Path::new("/c/[x]/notes")]);
        for (folder, expect) in [("/c", true), ("/c/[x]/notes", true), ("/c/[x]/notes/z", false)] {
            assert_eq!(flat.enters(Path::new(folder)), expect, "{folder}");
        }
        let deep = selection(&["**/*.md"], &[], &[]);
        assert!(!deep.enters(Path::new("/c/[x]/a/.git")));
        assert!(deep.enters(Path::new("/c/[x]/a/b")));
        let all = deep.leaving_nothing_out();
        assert!(all.enters(Path::new("/c/[x]/a/.git")) && !all.enters(Path::new("/d")));
        assert!(all.selects(Path::new("/c/[x]/a/.git/#x.md")));
    }
}
