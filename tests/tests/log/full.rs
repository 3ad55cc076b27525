//! Disks without room, and writes that stop half way: an error that says so, no half line, and a log that takes the next
//! append when there is room again.

use annals_engine::store::{EventStore, NewEvent};
use annals_engine::{Error, ErrorKind};
use annals_tests::disk::{Call, ENOSPC, Effect, Rule};
use annals_tests::history::{Found, Wrong};

use super::machine::{Client, Machine, event};

fn batches() -> Vec<Vec<NewEvent>> {
    vec![
        vec![event("s1", "a", 300)],
        vec![event("s1", "b1", 5), event("s2", "b2", 600), event("s2", "b3", 5)],
        vec![event("s2", "c", 500)],
        vec![event("s3", "d", 60)],
        vec![event("s1", "e1", 300), event("s3", "e2", 300)],
        vec![event("s1", "f", 5)],
    ]
}

fn writes(call: &Call) -> bool {
    call.writes("")
}

/// An answer that a full disk may give: no room, or, when the lines were written and their slot was not, unknown.
fn is_honest(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Full | ErrorKind::Indeterminate)
}

/// Appends all batches, each until it is taken; returns how many answers were errors. After each error the files hold
/// whole lines only.
fn append_all(m: &Machine, client: &Client, freed: impl Fn()) -> usize {
    let mut errors = 0;
    for batch in batches() {
        while let Err(error) = client.append(batch.clone()) {
            assert!(is_honest(&error), "{:?}: {error}", error.kind());
            let found = m.disk.look(Found::read);
            assert!(found.rest.is_empty(), "after {error}: {:?}", found.rest);
            let read = client.log.read(annals_engine::store::Read::default()).unwrap();
            assert!(read.filter(Result::is_err).count() == 0, "reads go on");
            errors += 1;
            assert!(errors < 100, "it does not recover: {error}");
            freed();
        }
    }
    errors
}

fn open_until_it_does(m: &Machine, freed: impl Fn()) -> Client {
    loop {
        match m.open() {
            Ok(client) => return client,
            Err(error) => {
                assert!(is_honest(&error), "{:?}: {error}", error.kind());
                freed();
            }
        }
    }
}

/// The n-th write finds no room, for every n until none is met: alone, and all writes from it until room is made.
#[test]
fn no_room_at_the_nth_write() {
    for lasting in [false, true] {
        let mut hit = 0;
        for n in 0.. {
            let m = Machine::new(1).rolling_at(1_800);
            let rule = Rule::new(writes, Effect::Fail(ENOSPC));
            m.disk.rule(if lasting { rule.from(n) } else { rule.nth(n) });
            let freed = || m.disk.clear_rules();
            let client = open_until_it_does(&m, freed);
            append_all(&m, &client, freed);
            let struck =
                m.disk.trace().iter().any(|done| done.outcome.is_err() && writes(&done.call));
            m.disk.clear_rules();
            let wrong = m.check(&client.log, None, &[]);
            assert_eq!(wrong, Wrong::new(), "write {n}, lasting: {lasting}");
            drop(client);
            m.power_loss(&annals_tests::disk::Loss::Everything);
            assert_eq!(m.check_recovery(None, &[]), Wrong::new(), "write {n}, lasting: {lasting}");
            if !struck {
                break;
            }
            hit += 1;
        }
        assert!(hit > 20, "only {hit} writes met a full disk");
    }
}

/// The disk has room for so many bytes and not one more, for every number up to what is needed; then room is made.
#[test]
fn room_for_so_many_bytes() {
    for room in (0..6_000).step_by(37) {
        let m = Machine::new(1).rolling_at(1_800);
        m.disk.meddle(|kernel| kernel.set_room(Some(room)));
        let freed = || m.disk.meddle(|kernel| kernel.set_room(None));
        let client = open_until_it_does(&m, freed);
        append_all(&m, &client, freed);
        assert_eq!(m.check(&client.log, None, &[]), Wrong::new(), "{room} bytes");
    }
}

/// A write of the log takes only its first k bytes, for every k; the next one goes on where it stopped. And when the
/// next one finds no room, nothing is left of the first.
#[test]
fn short_writes() {
    let batch = || vec![event("s1", "b1", 5), event("s2", "b2", 20)];
    let len = {
        let m = Machine::new(1);
        let client = m.open().unwrap();
        let before = m.disk.look(|kernel| kernel.files());
        client.append(batch()).unwrap();
        let sum = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
            files
                .iter()
                .filter(|(name, _)| name.starts_with("log/"))
                .map(|(_, b)| b.len())
                .sum::<usize>()
        };
        m.disk.look(|kernel| sum(&kernel.files())) - sum(&before)
    };
    for k in 0..=len {
        for no_room in [false, true] {
            let m = Machine::new(1);
            let client = m.open().unwrap();
            let to_log = |call: &Call| call.writes("log/");
            if k > 0 {
                m.disk.rule(Rule::new(to_log, Effect::Short(k)).nth(0));
            }
            if no_room {
                m.disk.rule(Rule::new(to_log, Effect::Fail(ENOSPC)).nth(u64::from(k > 0)));
            }
            let answer = client.append(batch());
            match (no_room && k < len, answer) {
                (true, Err(error)) => assert_eq!(*error.kind(), ErrorKind::Full, "{error}"),
                (false, Ok(_)) => {}
                (_, other) => panic!("{k} of {len} bytes, no room {no_room}: {other:?}"),
            }
            assert_eq!(m.check(&client.log, None, &[]), Wrong::new(), "{k} of {len} bytes");
            m.disk.clear_rules();
            client.append(batch()).unwrap();
            client.append(vec![event("s1", "after", 5)]).unwrap();
            assert_eq!(m.check(&client.log, None, &[]), Wrong::new(), "{k} of {len} bytes");
        }
    }
}
