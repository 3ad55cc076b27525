//! Text that somebody wrote as Markdown, made safe to stand in a document: it reads the same, and whoever shows it runs
//! nothing and loads nothing. Code is left as it is; outside of it, HTML and pictures lose their power, and a fence that
//! is not closed is closed, so that what follows is not swallowed.

/// The text for a document (CommonMark 0.31, sections 4.5 and 6.1).
pub(super) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut fence: Option<(char, usize)> = None;
    for line in text.lines() {
        match (fence, fence_of(line)) {
            (Some((open, length)), Some((mark, count, rest)))
                if mark == open && count >= length && rest.trim().is_empty() =>
            {
                fence = None;
                out.push_str(line);
            }
            (Some(_), _) => out.push_str(line),
            (None, Some((mark, count, rest))) if mark == '~' || !rest.contains('`') => {
                fence = Some((mark, count));
                out.push_str(line);
            }
            (None, _) => plain_line(line, &mut out),
        }
        out.push('\n');
    }
    if let Some((mark, length)) = fence {
        out.extend(std::iter::repeat_n(mark, length));
        out.push('\n');
    }
    out
}

/// Anything in a block of code that it cannot end.
pub(super) fn code(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// The mark of a fence, how often it stands there, and what follows it.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let bare = line.trim_start_matches(' ');
    let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = bare.trim_start_matches(mark);
    let count = bare.len() - rest.len();
    (line.len() - bare.len() <= 3 && count >= 3).then_some((mark, count, rest))
}

/// A line outside of fenced code; spans of code in it stay as they are.
fn plain_line(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(['`', '<', '!']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let run = from.len() - from.trim_start_matches('`').len();
        let taken = match run {
            0 => {
                let next = from.chars().nth(1);
                let opens =
                    next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
                let tag = from.starts_with('<') && opens;
                let picture = from.starts_with("![");
                if tag || picture {
                    out.push('\\');
                }
                1
            }
            run => span_end(from, run).unwrap_or(run),
        };
        let (taken, behind) = from.split_at(taken);
        out.push_str(taken);
        rest = behind;
    }
    out.push_str(rest);
}

/// Where a span of code that begins with so many backticks ends, if it does.
fn span_end(text: &str, run: usize) -> Option<usize> {
    let mut at = run;
    loop {
        let rest = text.get(at..)?;
        let start = at + rest.find('`')?;
        let behind = text.get(start..)?;
        let length = behind.len() - behind.trim_start_matches('`').len();
        at = start + length;
        if length == run {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(prose(text), format!("{expect}\n"), "{text}");
    }

    /// HTML and pictures lose their power outside of code and stay as they are inside of it.
    #[test]
    fn nothing_acts() {
        check("a <script>x</script> b", "a \\<script>x\\</script> b");
        check("1 < 2 and a<b? <3", "1 < 2 and a\\<b? <3");
        check("<!-- gone -->", "\\<!-- gone -->");
        check("see ![x](http://tracker)!", "see \\![x](http://tracker)!");
        check("`<b>` and <b>", "`<b>` and \\<b>");
        check("``a`<b>`` <b>", "``a`<b>`` \\<b>");
        check("`` unclosed <b>", "`` unclosed \\<b>");
        check("*bold* [link](x) # no heading", "*bold* [link](x) # no heading");
        check("größer <größe>", "größer \\<größe>");
    }

    /// A fence ends where CommonMark says, and an open one is closed.
    #[test]
    fn fences() {
        check("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n\\<b>");
        check("~~~\n```\n<b>\n~~~~\n<b>", "~~~\n```\n<b>\n~~~~\n\\<b>");
        check("````\n```\n<b>\n````\n<b>", "````\n```\n<b>\n````\n\\<b>");
        check("```\n<b>", "```\n<b>\n```");
        check("``` a`b\n<b>", "``` a`b\n\\<b>");
        check("    ```\n<b>", "    ```\n\\<b>");
    }

    /// A block of code has a fence that nothing in it can close.
    #[test]
    fn code_blocks() {
        assert_eq!(code("a\n", "text"), "```text\na\n```\n");
        assert_eq!(code("```\nx\n```", ""), "````\n```\nx\n```\n````\n");
        assert_eq!(code("", "json"), "```json\n```\n");
    }
}
