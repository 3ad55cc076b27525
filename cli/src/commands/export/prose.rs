//! Text that somebody wrote as Markdown, made safe to stand in a document: it reads the same, and whoever shows it runs
//! nothing, loads nothing, and takes nothing in it for a part of the document. Code is left as it is, but its fences are
//! written anew at the margin and closed; outside of it HTML, pictures, headings, rules and links to anywhere but the
//! web and mail are shown as they were typed. What the reader of a document must see apart, [`quoted`] sets apart.

/// The text for a document (CommonMark 0.31, sections 4.1 to 4.7, 6.1 and 6.3).
pub(super) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        match (open, fence_of(line)) {
            (Some((mark, length)), Some(fence)) if fence.closes(mark, length) => {
                open = None;
                out.extend(std::iter::repeat_n(mark, length));
            }
            (Some(_), _) => out.push_str(line),
            (None, Some(fence)) if fence.opens() => {
                // At the margin it ends every list and quotation before it: what follows is code for every reader.
                open = Some((fence.mark, fence.length));
                out.extend(std::iter::repeat_n(fence.mark, fence.length));
                out.push_str(fence.rest);
            }
            (None, _) => plain_line(line, &mut out),
        }
        out.push('\n');
    }
    if let Some((mark, length)) = open {
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

/// Lines as a quotation: nothing in them can be taken for a line of the document.
pub(super) fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect()
}

/// The fence of a block of code.
struct Fence<'a> {
    mark: char,
    length: usize,
    rest: &'a str,
}

impl Fence<'_> {
    /// A line with a bar may be the head of a table to some readers.
    fn opens(&self) -> bool {
        !self.rest.contains('|') && (self.mark == '~' || !self.rest.contains('`'))
    }

    fn closes(&self, mark: char, length: usize) -> bool {
        self.mark == mark && self.length >= length && self.rest.trim_matches([' ', '\t']).is_empty()
    }
}

fn fence_of(line: &str) -> Option<Fence<'_>> {
    let bare = line.trim_start_matches(' ');
    let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = bare.trim_start_matches(mark);
    let length = bare.len() - rest.len();
    (line.len() - bare.len() <= 3 && length >= 3).then_some(Fence { mark, length, rest })
}

/// A line outside of fenced code.
fn plain_line(line: &str, out: &mut String) {
    let at = block_start(line);
    let (containers, rest) = line.split_at(at);
    out.push_str(containers);
    if is_heading(rest) || is_rule(rest) || rest.starts_with("~~~") {
        out.push('\\');
    }
    inline(rest, out);
}

/// Where the text of a line begins behind blanks and the marks of quotations and list items.
fn block_start(line: &str) -> usize {
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let behind_digits = rest.get(digits..).unwrap_or_default();
        let behind = match rest.strip_prefix('>') {
            Some(behind) => Some(behind),
            None if digits > 0 => behind_digits.strip_prefix(['.', ')']),
            None => rest.strip_prefix(['-', '+', '*']),
        };
        let is_item = !rest.starts_with('>');
        let taken = behind.filter(|behind| !is_item || behind.starts_with([' ', '\t']));
        match taken {
            Some(behind) if !is_rule(rest) => rest = behind,
            _ => return line.len() - rest.len(),
        }
    }
}

/// Whether a line is a heading by its first mark.
fn is_heading(line: &str) -> bool {
    let behind = line.trim_start_matches('#');
    let level = line.len() - behind.len();
    level > 0 && (behind.is_empty() || behind.starts_with([' ', '\t']))
}

/// Whether a line is a rule, or makes the line before it a heading.
fn is_rule(line: &str) -> bool {
    let mark = line.chars().next().filter(|c| matches!(c, '-' | '=' | '*' | '_'));
    mark.is_some_and(|mark| line.chars().all(|c| c == mark || matches!(c, ' ' | '\t')))
}

/// Where a link may lead.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// The text of a line; spans of code in it stay as they are. A run of backticks that no span ends is spelled out, so
/// that it cannot be joined with one of another line.
fn inline(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(['`', '<', '!', ']', '\\']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let taken = special(from, out);
        rest = from.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// Writes what the text begins with, and gives how many bytes that was.
fn special(text: &str, out: &mut String) -> usize {
    let run = text.len() - text.trim_start_matches('`').len();
    if run > 0 {
        return match span_end(text, run).and_then(|end| text.get(..end)).filter(|s| is_inert(s)) {
            Some(span) => {
                out.push_str(span);
                span.len()
            }
            None => spelled(run, out),
        };
    }
    let next = text.chars().nth(1);
    if text.starts_with('\\') && next == Some('`') {
        let behind = text.get(1..).unwrap_or_default();
        return 1 + spelled(behind.len() - behind.trim_start_matches('`').len(), out);
    }
    if text.starts_with('\\') && next.is_some_and(|c| c.is_ascii_punctuation()) {
        out.push_str(text.get(..2).unwrap_or_default());
        return 2;
    }
    if text.starts_with("](") {
        let target = text.get(2..).unwrap_or_default();
        let leads = |scheme: &&str| {
            target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        out.push_str(if SCHEMES.iter().any(leads) { "](" } else { "]\\(" });
        return 2;
    }
    let definition = text.starts_with("]:");
    let opens = next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
    if text.starts_with('<') && opens || text.starts_with("![") {
        out.push('\\');
    }
    out.push_str(text.get(..1).unwrap_or_default());
    if definition {
        out.push('\\');
    }
    1
}

/// A run of backticks that mean themselves.
fn spelled(run: usize, out: &mut String) -> usize {
    out.extend(std::iter::repeat_n("\\`", run));
    run
}

/// Whether a span of code stays one where a bar ends the cell of a table.
fn is_inert(span: &str) -> bool {
    !(span.contains('|') && span.contains(['<', '[']))
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
        check("größer <größe>", "größer \\<größe>");
    }

    /// A span of code is one for every reader: no run of backticks is joined over lines, cells or a backslash.
    #[test]
    fn spans_that_are_none() {
        check("`` unclosed <b>", "\\`\\` unclosed \\<b>");
        check("a `\n` <b> `", "a \\`\n` <b> `");
        check("\\`<b>`", "\\`\\<b>\\`");
        check("\\``<b>`", "\\`\\`\\<b>\\`");
        check("\\<b> \\\\<b> \\x", "\\<b> \\\\\\<b> \\x");
        check("| `a|<b>` |", "| \\`a|\\<b>\\` |");
        check("`a | b`", "`a | b`");
    }

    /// Headings and rules are no part of the document; emphasis, lists, quotations and tables stay.
    #[test]
    fn no_headings() {
        check("# one\n###### six ##\n#tag", "\\# one\n\\###### six ##\n#tag");
        check("title\n---\nx\n  ===", "title\n\\---\nx\n  \\===");
        check("* * *\n_____\n-", "\\* * *\n\\_____\n\\-");
        check("> # a\n1. ## b\n- > # c\n+ ---", "> \\# a\n1. \\## b\n- > \\# c\n+ \\---");
        check("- one\n* two\n1) three\n> four", "- one\n* two\n1) three\n> four");
        check(
            "*bold* # no heading\n| a | b |\n|---|---|",
            "*bold* # no heading\n| a | b |\n|---|---|",
        );
    }

    /// Links lead to the web and to mail, and nothing else is one.
    #[test]
    fn links() {
        check("[a](https://x) [b](MAILTO:a@b)", "[a](https://x) [b](MAILTO:a@b)");
        check("[a](javascript:alert(1))", "[a]\\(javascript:alert(1))");
        check("[a]( https://x)", "[a]\\( https://x)");
        check("[a](&#106;avascript:x)", "[a]\\(&#106;avascript:x)");
        check("[a]: javascript:x\n[a][a]", "[a]\\: javascript:x\n[a][a]");
        check("<javascript:x>", "\\<javascript:x>");
    }

    /// A fence ends where CommonMark says, an open one is closed, and each stands at the margin, where no list or
    /// quotation can end it early.
    #[test]
    fn fences() {
        check("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n\\<b>");
        check("~~~\n```\n<b>\n~~~~\n<b>", "~~~\n```\n<b>\n~~~\n\\<b>");
        check("````\n```\n<b>\n````\n<b>", "````\n```\n<b>\n````\n\\<b>");
        check("```\n<b>", "```\n<b>\n```");
        check("``` a`b\n<b>", "\\`\\`\\` a\\`b\n\\<b>");
        check("    ```\n<b>", "    \\`\\`\\`\n\\<b>");
        check("- ```\n  x\n  ```\n<b>", "- \\`\\`\\`\n  x\n```\n<b>\n```");
        check("~~~ a | b\n<b>\n> ~~~", "\\~~~ a | b\n\\<b>\n> \\~~~");
        check("```\n```\u{a0}\n<b>\n```", "```\n```\u{a0}\n<b>\n```");
    }

    /// A block of code has a fence that nothing in it can close.
    #[test]
    fn code_blocks() {
        assert_eq!(code("a\n", "text"), "```text\na\n```\n");
        assert_eq!(code("```\nx\n```", ""), "````\n```\nx\n```\n````\n");
        assert_eq!(code("", "json"), "```json\n```\n");
    }

    /// Every line of a quotation bears its mark.
    #[test]
    fn quotations() {
        assert_eq!(quoted("a\n\n# b"), "> a\n>\n> # b\n");
        assert_eq!(quoted(""), "");
    }
}
