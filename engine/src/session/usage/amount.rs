//! Amounts of usage, which can be taken back when more is known.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::session::event::Tokens;

/// Tokens and cost. Sums are wide enough never to overflow, so that what was added can be taken back exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    messages: i128,
    tokens_in: i128,
    tokens_out: i128,
    cache_read: i128,
    cache_write: i128,
    cost_micros: i128,
    /// How many of the messages named a price.
    priced: i128,
}

impl Amount {
    /// What one message, or one run, told.
    pub(super) fn of(tokens: Option<&Tokens>, cost_micros: Option<u64>) -> Self {
        let told = tokens.is_some() || cost_micros.is_some();
        let of = |number: Option<u64>| i128::from(number.unwrap_or(0));
        Self {
            messages: i128::from(told),
            tokens_in: of(tokens.map(|tokens| tokens.r#in)),
            tokens_out: of(tokens.map(|tokens| tokens.out)),
            cache_read: of(tokens.and_then(|tokens| tokens.cache_read)),
            cache_write: of(tokens.and_then(|tokens| tokens.cache_write)),
            cost_micros: of(cost_micros),
            priced: i128::from(cost_micros.is_some()),
        }
    }

    /// How many messages and runs told something.
    #[must_use]
    pub fn messages(&self) -> u64 {
        narrow(self.messages)
    }

    /// Tokens of the input.
    #[must_use]
    pub fn tokens_in(&self) -> u64 {
        narrow(self.tokens_in)
    }

    /// Tokens of the output.
    #[must_use]
    pub fn tokens_out(&self) -> u64 {
        narrow(self.tokens_out)
    }

    /// Tokens read from a cache.
    #[must_use]
    pub fn cache_read(&self) -> u64 {
        narrow(self.cache_read)
    }

    /// Tokens written to a cache.
    #[must_use]
    pub fn cache_write(&self) -> u64 {
        narrow(self.cache_write)
    }

    /// What it cost in millionths of a dollar, as far as somebody told; `None` when nobody did.
    #[must_use]
    pub fn cost_micros(&self) -> Option<u64> {
        (self.priced > 0).then(|| narrow(self.cost_micros))
    }

    /// Whether it is none at all.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// What tells which of two pieces is the larger: the tokens that the sessions view counts, before all others.
    pub(super) const fn size(&self) -> (i128, i128, i128, i128) {
        let cached = self.cache_read + self.cache_write;
        (self.tokens_in + self.tokens_out, cached, self.cost_micros, self.messages)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, |a, b| a + b);
    }

    pub(super) fn take_back(&mut self, other: &Self) {
        self.combine(other, |a, b| a - b);
    }

    fn combine(&mut self, other: &Self, with: impl Fn(i128, i128) -> i128) {
        self.messages = with(self.messages, other.messages);
        self.tokens_in = with(self.tokens_in, other.tokens_in);
        self.tokens_out = with(self.tokens_out, other.tokens_out);
        self.cache_read = with(self.cache_read, other.cache_read);
        self.cache_write = with(self.cache_write, other.cache_write);
        self.cost_micros = with(self.cost_micros, other.cost_micros);
        self.priced = with(self.priced, other.priced);
    }

    /// What this is more than another: of input and output together, as the sessions view has it, and of the others each.
    pub(super) fn beyond(&self, other: &Self) -> Self {
        let more = |a: i128, b: i128| (a - b).max(0);
        let both = |amount: &Self| amount.tokens_in + amount.tokens_out;
        let tokens = more(both(self), both(other));
        let tokens_out = more(self.tokens_out, other.tokens_out).min(tokens);
        let cost_micros = more(self.cost_micros, other.cost_micros);
        let beyond = Self {
            messages: 0,
            tokens_in: tokens - tokens_out,
            tokens_out,
            cache_read: more(self.cache_read, other.cache_read),
            cache_write: more(self.cache_write, other.cache_write),
            cost_micros,
            priced: i128::from(self.priced > 0 && other.priced == 0),
        };
        // A run whose turns told something is no message of its own.
        let alone = other.messages == 0 && beyond != Self::default();
        Self { messages: i128::from(alone), ..beyond }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Amount", 6)?;
        fields.serialize_field("messages", &self.messages())?;
        fields.serialize_field("tokensIn", &self.tokens_in())?;
        fields.serialize_field("tokensOut", &self.tokens_out())?;
        fields.serialize_field("cacheRead", &self.cache_read())?;
        fields.serialize_field("cacheWrite", &self.cache_write())?;
        fields.serialize_field("costMicros", &self.cost_micros())?;
        fields.end()
    }
}

/// Sums beyond what a JSON number of this kind holds show as the largest.
fn narrow(sum: i128) -> u64 {
    u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
}
