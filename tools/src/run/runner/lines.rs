//! Bytes into lines, of which none is longer than is allowed.

/// Cuts bytes at line feeds. A line that is too long keeps its beginning.
#[derive(Debug)]
pub(super) struct Lines {
    open: Vec<u8>,
    /// How long the open line is in all.
    length: u64,
    most: usize,
    cut: u64,
    repaired: u64,
}

impl Lines {
    /// Lines of so many bytes at most.
    pub(super) fn new(most: usize) -> Self {
        Self { open: Vec::new(), length: 0, most, cut: 0, repaired: 0 }
    }

    /// Takes bytes and gives every line that they complete, without its line feed.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&str)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (before, behind) = bytes.split_at(end);
            self.grow(before);
            line(&self.close());
            bytes = behind.get(1..).unwrap_or_default();
        }
        self.grow(bytes);
    }

    /// The last line, which nothing ended; `None` when there is none.
    pub(super) fn rest(&mut self) -> Option<String> {
        (self.length > 0).then(|| self.close())
    }

    /// What was done to lines, in words.
    pub(super) fn notes(&self) -> Vec<String> {
        let lines =
            |count: u64| if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        let mut notes = Vec::new();
        if self.cut > 0 {
            notes.push(format!("{} of its output cut at {} bytes", lines(self.cut), self.most));
        }
        if self.repaired > 0 {
            notes.push(format!("{} of its output repaired, not being UTF-8", lines(self.repaired)));
        }
        notes
    }

    fn grow(&mut self, bytes: &[u8]) {
        self.length += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let room = self.most.saturating_sub(self.open.len());
        self.open.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn close(&mut self) -> String {
        let bytes = std::mem::take(&mut self.open);
        let length = std::mem::take(&mut self.length);
        let cut = u64::try_from(bytes.len()).is_ok_and(|kept| kept < length);
        let (whole, text) = repaired(&bytes, cut);
        self.repaired += u64::from(!whole);
        if !cut {
            return text;
        }
        self.cut += 1;
        format!("{text} [cut: the line had {length} bytes]")
    }
}

/// Bytes as text, and whether they were; a character that was cut in two is left out.
fn repaired(bytes: &[u8], cut: bool) -> (bool, String) {
    let bytes = match std::str::from_utf8(bytes) {
        Ok(text) => return (true, text.to_owned()),
        Err(e) if cut && e.error_len().is_none() => {
            bytes.get(..e.valid_up_to()).unwrap_or_default()
        }
        Err(_) => bytes,
    };
    let text = String::from_utf8_lossy(bytes);
    (matches!(text, std::borrow::Cow::Borrowed(_)), text.into_owned())
}

/// The text of bytes that are still coming: what may be the beginning of a character stays.
pub(super) fn take_text(bytes: &mut Vec<u8>) -> String {
    let tail = bytes.len().saturating_sub(3);
    let open = (tail..bytes.len()).find(|at| {
        let rest = bytes.get(*at..).unwrap_or_default();
        std::str::from_utf8(rest).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
    });
    let rest = bytes.split_off(open.unwrap_or(bytes.len()));
    let text = String::from_utf8_lossy(bytes).into_owned();
    *bytes = rest;
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(most: usize, chunks: &[&[u8]], expect: &[&str], notes: &[&str]) {
        let mut lines = Lines::new(most);
        let mut found = Vec::new();
        for chunk in chunks {
            lines.push(chunk, |line| found.push(line.to_owned()));
        }
        found.extend(lines.rest());
        assert_eq!(found, expect);
        assert_eq!(lines.notes(), notes);
    }

    /// Goal: lines are what stands between line feeds, wherever the chunks begin. Method: empty lines, an open end, a NUL
    /// byte, a character in two chunks.
    #[test]
    fn lines() {
        check(9, &[b"a\n\nb\0", b"c\n", b"d"], &["a", "", "b\0c", "d"], &[]);
        check(9, &[b"\xC3", b"\xA4\n"], &["ä"], &[]);
        check(9, &[b"", b"\n"], &[""], &[]);
        check(9, &[], &[], &[]);
    }

    /// Goal: a line that is too long keeps its beginning and says so, and what is no UTF-8 is repaired and said. Method:
    /// one that just fits, one over several chunks, one cut inside a character, bytes that are no text.
    #[test]
    fn cut_and_repaired() {
        let note = "1 line of its output cut at 3 bytes";
        check(
            3,
            &[b"abc\nab", b"cd", b"ef\ng"],
            &["abc", "abc [cut: the line had 6 bytes]", "g"],
            &[note],
        );
        check(3, &["abä".as_bytes()], &["ab [cut: the line had 4 bytes]"], &[note]);
        let note = "1 line of its output repaired, not being UTF-8";
        check(9, &[b"a\xFFb\nc\n"], &["a\u{FFFD}b", "c"], &[note]);
        check(9, &[b"a\xC3"], &["a\u{FFFD}"], &[note]);
    }

    /// Goal: text that comes in pieces is never cut inside a character. Method: every split of a text with characters of
    /// each length, and bytes that begin none.
    #[test]
    fn text_in_pieces() {
        let text = "aä€😀z";
        for at in 0..=text.len() {
            let mut bytes = text.as_bytes()[..at].to_vec();
            let mut got = take_text(&mut bytes);
            bytes.extend_from_slice(&text.as_bytes()[at..]);
            got.push_str(&take_text(&mut bytes));
            assert_eq!((got.as_str(), bytes.as_slice()), (text, &[][..]), "{at}");
        }
        let mut bytes = b"a\xFF\xC3".to_vec();
        assert_eq!(take_text(&mut bytes), "a\u{FFFD}");
        assert_eq!(bytes, b"\xC3");
    }
}
