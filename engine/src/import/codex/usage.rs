//! Tokens as Codex counts them: the sum of the session after each answer. What an answer used is the difference to the
//! sum before; a sum that is told again is none.

use crate::import::fields::Fields;
use crate::session::event::Tokens;

/// The sum of a session, and what was used since the one before.
#[derive(Debug)]
pub(super) struct Count {
    pub(super) total: Tokens,
    /// `None` when nothing was used.
    pub(super) used: Option<Tokens>,
}

/// Reads the `info` of a `token_count`; `None` where it tells no sum.
pub(super) fn count(info: &Fields<'_>, before: Option<&Tokens>) -> Option<Count> {
    let told = |name: &str| tokens(&Fields::parse(info.get(name)?.get())?);
    let total = told("total_token_usage")?;
    let used = match before {
        None => total.clone(),
        Some(before) if sum(before) > sum(&total) => told("last_token_usage").unwrap_or(NONE),
        Some(before) => less(&total, before),
    };
    let used = Some(used).filter(|used| sum(used) > 0);
    Some(Count { total, used })
}

const NONE: Tokens = Tokens { r#in: 0, out: 0, cache_read: None, cache_write: None };

/// Codex counts to the input what came from the cache and what went into it.
fn tokens(usage: &Fields<'_>) -> Option<Tokens> {
    let count = |name: &str| usage.get(name).and_then(crate::import::fields::count);
    let (cache_read, cache_write) =
        (count("cached_input_tokens"), count("cache_write_input_tokens"));
    let cached = cache_read.unwrap_or_default().saturating_add(cache_write.unwrap_or_default());
    let fresh = count("input_tokens")?.saturating_sub(cached);
    Some(Tokens { r#in: fresh, out: count("output_tokens")?, cache_read, cache_write })
}

fn sum(tokens: &Tokens) -> u64 {
    [tokens.r#in, tokens.out, tokens.cache_read.unwrap_or(0), tokens.cache_write.unwrap_or(0)]
        .into_iter()
        .fold(0, u64::saturating_add)
}

fn less(all: &Tokens, before: &Tokens) -> Tokens {
    let of = |all: Option<u64>, before: Option<u64>| {
        all.map(|all| all.saturating_sub(before.unwrap_or(0)))
    };
    Tokens {
        r#in: all.r#in.saturating_sub(before.r#in),
        out: all.out.saturating_sub(before.out),
        cache_read: of(all.cache_read, before.cache_read),
        cache_write: of(all.cache_write, before.cache_write),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what the answers of a session used is together its last sum, whatever is told twice. Method: sums that
    /// grow, are repeated, and begin anew.
    #[test]
    fn differences() {
        let mut before = None;
        let mut check = |input: u64, cached: u64, out: u64, expect: Option<(u64, u64, u64)>| {
            let usage = format!(
                "{{\"input_tokens\":{input},\"cached_input_tokens\":{cached},\"output_tokens\":{out}}}"
            );
            let text = format!("{{\"total_token_usage\":{usage},\"last_token_usage\":{usage}}}");
            let told = count(&Fields::parse(&text).unwrap(), before.as_ref()).unwrap();
            let used = told.used.map(|u| (u.r#in, u.cache_read.unwrap(), u.out));
            assert_eq!(used, expect, "{text}");
            before = Some(told.total);
        };
        check(100, 40, 10, Some((60, 40, 10)));
        check(100, 40, 10, None);
        check(250, 140, 15, Some((50, 100, 5)));
        check(30, 0, 1, Some((30, 0, 1)));
        assert!(count(&Fields::parse("{}").unwrap(), None).is_none());
    }
}
