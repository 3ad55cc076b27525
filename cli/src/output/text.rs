//! Text from the log on somebody's screen: one line, and nothing in it that a terminal would obey.

/// The text in one line: white space runs become one blank, and control characters and marks that turn the direction
/// of writing are spelled out, because whoever wrote an event must not command the terminal of whoever reads it.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if commands(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// The same for text that keeps its lines.
pub(crate) fn many_lines(text: &str) -> String {
    let spell = |c: char| {
        if commands(c) && c != '\n' && c != '\t' {
            c.escape_unicode().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(spell).collect()
}

/// Lines that somebody else wrote, set in from the margin, so that none of them can be taken for one of ours.
pub(crate) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}

/// Control characters, the separators of lines and paragraphs, and what turns the direction of writing.
fn commands(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// `1 event`, `2 events`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `64.2 MiB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (size, unit) in UNITS {
        if number >= size {
            let tenths = (u128::from(number) * 10 + u128::from(size) / 2) / u128::from(size);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{number} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line stays a line, and an escape sequence is shown and not obeyed.
    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(one_line("  a\n\n\tb  "), "a b");
        assert_eq!(one_line("\u{1b}[2Jx\u{7}"), "\\u{1b}[2Jx\\u{7}");
        assert_eq!(one_line("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(many_lines("a\n\tb\r\u{9b}"), "a\n\tb\\u{d}\\u{9b}");
        assert_eq!(many_lines("a\u{2028}b\u{200f}"), "a\\u{2028}b\\u{200f}");
        assert_eq!(one_line("日本語 ✓"), "日本語 ✓");
    }

    /// What somebody else wrote never begins at the margin.
    #[test]
    fn set_in() {
        assert_eq!(indented("a\n\n\tb\n"), "  a\n\n  \tb\n");
    }

    /// Numbers for eyes.
    #[test]
    fn numbers() {
        assert_eq!(count(1, "event"), "1 event");
        assert_eq!(count(134_077, "event"), "134,077 events");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1_023), "1023 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
