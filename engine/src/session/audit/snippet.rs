//! The beginning of a text, fit for one line of a terminal.

/// At most `chars` characters of a text on one line: white space is one space, what controls a terminal or turns the
/// direction of writing is left out, and `…` stands where more follows. Nothing when `chars` is 0.
#[must_use]
pub fn snippet(text: &str, chars: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() {
            space = count > 0;
            continue;
        }
        if c.is_control() || turns_direction(c) {
            continue;
        }
        let needed = usize::from(space) + 1;
        if count + needed > chars {
            if chars > 0 {
                line.push('…');
            }
            return line;
        }
        if space {
            line.push(' ');
        }
        line.push(c);
        count += needed;
        space = false;
    }
    line
}

/// The explicit direction characters (Unicode Standard Annex 9, table 1).
const fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts, a limit, and what is shown of them.
    #[test]
    fn shown() {
        for (text, chars, expect) in [
            ("hello", 10, "hello"),
            ("hello", 5, "hello"),
            ("hello", 4, "hell…"),
            ("  a\n\t b  ", 10, "a b"),
            ("a b", 1, "a…"),
            ("a b", 2, "a…"),
            ("a   ", 1, "a"),
            ("परिवार", 3, "परि…"),
            ("a\u{1b}[31mb\u{7}\u{202e}c", 20, "a[31mbc"),
            ("hello", 0, ""),
            ("", 5, ""),
        ] {
            assert_eq!(snippet(text, chars), expect, "{text:?} {chars}");
        }
    }
}
