//! Reads the fields of a JSON object in a given order by comparing bytes. Only for text that is known to be minified
//! JSON. It knows no escapes and no nesting but what it is asked for, and gives up on everything else, so that the
//! caller can parse.
//!
//! The readers of fields are always inlined: a name that is known when the program is built is compared in one or two
//! steps, and a fold asks for many.

/// A reader of one object's fields, from the first on.
pub(super) struct Scan<'a> {
    rest: &'a str,
    first: bool,
}

impl<'a> Scan<'a> {
    /// Begins an object.
    pub(super) fn object(text: &'a str) -> Option<Self> {
        Some(Self { rest: text.strip_prefix('{')?, first: true })
    }

    /// The text of the next field if that has this name; `None` inside when it has another. Gives up on other values.
    #[inline(always)]
    pub(super) fn text(&mut self, name: &str) -> Option<Option<&'a str>> {
        if !self.enter(name) {
            return Some(None);
        }
        self.string().map(Some)
    }

    /// The number of the next field, likewise.
    #[inline(always)]
    pub(super) fn number(&mut self, name: &str) -> Option<Option<u64>> {
        if !self.enter(name) {
            return Some(None);
        }
        let end = self.rest.bytes().position(|b| !b.is_ascii_digit())?;
        let (digits, rest) = self.rest.split_at_checked(end)?;
        if !rest.starts_with([',', '}']) {
            return None;
        }
        self.rest = rest;
        digits.parse().ok().map(Some)
    }

    /// The truth value of the next field, likewise.
    #[inline(always)]
    pub(super) fn flag(&mut self, name: &str) -> Option<Option<bool>> {
        if !self.enter(name) {
            return Some(None);
        }
        let (value, rest) = match self.rest.strip_prefix("true") {
            Some(rest) => (true, rest),
            None => (false, self.rest.strip_prefix("false")?),
        };
        self.rest = rest;
        Some(Some(value))
    }

    /// The texts of the list that is the next field, likewise; none when it has another name.
    #[inline(always)]
    pub(super) fn texts(&mut self, name: &str) -> Option<Vec<&'a str>> {
        let mut texts = Vec::new();
        if !self.enter(name) {
            return Some(texts);
        }
        self.rest = self.rest.strip_prefix('[')?;
        loop {
            texts.push(self.string()?);
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None => break,
            }
        }
        self.rest = self.rest.strip_prefix(']')?;
        Some(texts)
    }

    /// What `read` makes of the object that is the next field, which it must read whole; likewise.
    pub(super) fn inside<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        if !self.enter(name) {
            return Some(None);
        }
        let mut inside = Self::object(self.rest)?;
        let value = read(&mut inside)?;
        self.rest = inside.rest.strip_prefix('}')?;
        Some(Some(value))
    }

    /// Whether the next field has this name.
    pub(super) fn is_at(&self, name: &str) -> bool {
        self.after(name).is_some()
    }

    /// Whether no field follows.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest == "}"
    }

    #[inline(always)]
    fn enter(&mut self, name: &str) -> bool {
        let Some(rest) = self.after(name) else { return false };
        self.rest = rest;
        self.first = false;
        true
    }

    #[inline(always)]
    fn after(&self, name: &str) -> Option<&'a str> {
        let rest = if self.first { self.rest } else { self.rest.strip_prefix(',')? };
        let rest = rest.strip_prefix('"')?;
        // Most fields that are asked for are absent, and one byte tells.
        if rest.as_bytes().first() != name.as_bytes().first() {
            return None;
        }
        rest.strip_prefix(name)?.strip_prefix("\":")
    }

    fn string(&mut self) -> Option<&'a str> {
        let text = self.rest.strip_prefix('"')?;
        let end = memchr::memchr2(b'"', b'\\', text.as_bytes())?;
        let (text, rest) = text.split_at_checked(end)?;
        self.rest = rest.strip_prefix('"')?;
        Some(text)
    }
}
