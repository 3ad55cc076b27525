//! Rules against instants that were worked out by hand.

use super::*;
use crate::session::event::ChatType;

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond())
}

fn daily(hour: u8, zone: &str) -> Rule {
    let zone = Zone::named(zone).unwrap();
    Rule { mode: ResetMode::Daily, at_hour: hour, idle_minutes: 0, zone }
}

fn idle(minutes: u64) -> Rule {
    Rule { mode: ResetMode::Idle, at_hour: 0, idle_minutes: minutes, zone: Zone::utc() }
}

fn part(began: &str, last_human: &str) -> PartFacts {
    PartFacts { began_at: at(began), last_human_at: Some(at(last_human)) }
}

/// `fresh`, or why and since when.
fn check(rule: &Rule, part: PartFacts, now: &str, expect: &str) {
    let found = rule
        .expiry(part, at(now))
        .map_or_else(|| "fresh".to_owned(), |expiry| format!("{} {}", expiry.reason, expiry.at));
    assert_eq!(found, expect, "{rule:?} at {now}");
}

/// Goal: the hour is the zone's, not the host's. Method: the same turns under Shanghai and under UTC.
#[test]
fn the_hour_is_the_zones() {
    let talk = part("2026-07-15T19:50:00Z", "2026-07-15T19:50:00Z");
    check(
        &daily(4, "Asia/Shanghai"),
        talk,
        "2026-07-15T20:10:00Z",
        "daily 2026-07-15T20:00:00.000000Z",
    );
    check(&daily(4, "UTC"), talk, "2026-07-15T20:10:00Z", "fresh");
    check(&daily(4, "UTC"), talk, "2026-07-16T04:00:00Z", "daily 2026-07-16T04:00:00.000000Z");
}

/// Goal: an hour that occurs twice is one boundary, one that does not occur is not skipped. Method: the nights on which
/// New York turns its clocks.
#[test]
fn nights_on_which_clocks_turn() {
    let rule = daily(1, "America/New_York");
    let before = part("2026-11-01T04:30:00Z", "2026-11-01T04:30:00Z");
    check(&rule, before, "2026-11-01T04:59:59Z", "fresh");
    check(&rule, before, "2026-11-01T05:10:00Z", "daily 2026-11-01T05:00:00.000000Z");
    let between = part("2026-11-01T05:30:00Z", "2026-11-01T05:30:00Z");
    check(&rule, between, "2026-11-01T06:30:00Z", "fresh");
    check(&rule, between, "2026-11-02T06:00:00Z", "daily 2026-11-02T06:00:00.000000Z");
    let gap = daily(2, "America/New_York");
    let before = part("2026-03-08T06:00:00Z", "2026-03-08T06:00:00Z");
    check(&gap, before, "2026-03-08T06:59:59Z", "fresh");
    check(&gap, before, "2026-03-08T07:00:00Z", "daily 2026-03-08T07:00:00.000000Z");
    let after = part("2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z");
    check(&gap, after, "2026-03-09T05:59:59Z", "fresh");
    check(&gap, after, "2026-03-09T06:00:00Z", "daily 2026-03-09T06:00:00.000000Z");
}

/// Goal: stale is more than the idle time, and a time in the future counts as now. Method: the second at the limit.
#[test]
fn idle_is_strictly_more() {
    let talk = part("2026-04-01T00:00:00Z", "2026-04-01T10:00:00Z");
    check(&idle(60), talk, "2026-04-01T11:00:00Z", "fresh");
    check(&idle(60), talk, "2026-04-01T11:00:01Z", "idle 2026-04-01T11:00:00.000000Z");
    check(&idle(0), talk, "2027-04-01T11:00:01Z", "fresh");
    let ahead = part("2026-04-01T00:00:00Z", "2030-04-01T10:00:00Z");
    check(&idle(60), ahead, "2026-04-01T11:00:00Z", "fresh");
    let silent = PartFacts { began_at: at("2026-04-01T00:00:00Z"), last_human_at: None };
    check(&idle(60), silent, "2026-04-01T01:00:01Z", "idle 2026-04-01T01:00:00.000000Z");
    let before = part("2026-04-01T00:00:00Z", "2026-03-01T00:00:00Z");
    check(&idle(60), before, "2026-04-01T01:00:00Z", "fresh");
    check(&Rule::never(Zone::utc()), talk, "2036-04-01T11:00:01Z", "fresh");
}

/// Goal: with both rules whichever falls first counts, and a boundary has no guard for people who write around it.
/// Method: writing at 03:40, 03:58 and 04:02, then silence.
#[test]
fn whichever_falls_first() {
    let rule = Rule { idle_minutes: 60, ..daily(4, "UTC") };
    let talk = part("2026-04-01T03:40:00Z", "2026-04-01T03:58:00Z");
    check(&rule, talk, "2026-04-01T04:02:00Z", "daily 2026-04-01T04:00:00.000000Z");
    let anew = part("2026-04-01T04:02:00Z", "2026-04-01T04:02:00Z");
    check(&rule, anew, "2026-04-01T05:02:00Z", "fresh");
    check(&rule, anew, "2026-04-01T06:00:00Z", "idle 2026-04-01T05:02:00.000000Z");
}

/// Goal: the moment of expiry stays where it is however late somebody looks, and never lies before what was said last.
/// Method: days of silence; a rule that came into force after the talk.
#[test]
fn the_moment_does_not_move() {
    let talk = part("2026-04-01T22:00:00Z", "2026-04-01T23:00:00Z");
    for now in ["2026-04-02T04:00:00Z", "2026-04-02T07:00:00Z", "2026-04-09T07:00:00Z"] {
        check(&daily(4, "UTC"), talk, now, "daily 2026-04-02T04:00:00.000000Z");
    }
    let long = part("2026-03-01T00:00:00Z", "2026-04-02T05:00:00Z");
    check(&daily(4, "UTC"), long, "2026-04-02T06:00:00Z", "daily 2026-04-02T04:00:00.000000Z");
}

/// Goal: a run at work puts a reset off, and not for ever. Method: a run of three days against an idle rule.
#[test]
fn a_run_defers_for_a_while() {
    let talk = part("2026-04-01T00:00:00Z", "2026-04-01T00:00:00Z");
    let rule = idle(120);
    let since = at("2026-04-01T00:10:00Z");
    let at_work = |run| AtWork { run, since };
    let standing = |run: Option<&'static str>, now| {
        rule.standing(talk, run.map(at_work), Duration::from_secs(3600), at(now))
    };
    let expiry = Expiry { at: at("2026-04-01T02:00:00Z"), reason: ResetReason::Idle };
    assert_eq!(standing(Some("r"), "2026-04-01T02:00:00Z"), Standing::Fresh);
    let until = at("2026-04-01T03:00:00Z");
    assert_eq!(
        standing(Some("r"), "2026-04-01T02:59:59Z"),
        Standing::Deferred { expiry, run: "r", until }
    );
    assert_eq!(
        standing(Some("r"), "2026-04-04T00:00:00Z"),
        Standing::Expired { expiry, deferred_by: Some("r") }
    );
    assert_eq!(
        standing(None, "2026-04-01T02:30:00Z"),
        Standing::Expired { expiry, deferred_by: None }
    );
}

fn said(mode: Option<ResetMode>, at_hour: Option<u8>, idle_minutes: Option<u64>) -> Override {
    Override { mode, at_hour, idle_minutes, zone: None }
}

fn in_force(rules: &Rules, sort: SessionType, channel: Option<&str>, chat: bool) -> String {
    let rule = rules.of(sort, channel, chat);
    format!("{} {} {} {}", rule.mode, rule.at_hour, rule.idle_minutes, rule.zone.name())
}

/// Goal: a channel's rule stands for itself, a type's is completed by the general one, and nothing said is no reset.
/// Method: rules side by side.
#[test]
fn the_nearest_rule_is_in_force() {
    let mut rules = Rules::none(Zone::utc());
    assert_eq!(in_force(&rules, SessionType::Direct, None, true), "none 4 0 UTC");
    rules.general = Override {
        zone: Some(Zone::named("Asia/Tokyo").unwrap()),
        ..said(Some(ResetMode::Daily), Some(5), Some(30))
    };
    rules.by_type.insert(SessionType::Thread, said(Some(ResetMode::Idle), None, Some(180)));
    rules.by_type.insert(SessionType::Group, said(None, Some(3), None));
    rules.by_channel.insert("discord".to_owned(), said(None, None, Some(7)));
    assert_eq!(in_force(&rules, SessionType::Direct, Some("x"), false), "daily 5 30 Asia/Tokyo");
    assert_eq!(in_force(&rules, SessionType::Thread, Some("x"), false), "idle 5 180 Asia/Tokyo");
    assert_eq!(in_force(&rules, SessionType::Group, None, false), "daily 3 30 Asia/Tokyo");
    assert_eq!(in_force(&rules, SessionType::Group, Some("discord"), false), "idle 4 7 Asia/Tokyo");
    assert_eq!(
        in_force(&rules, SessionType::Direct, Some("Discord"), false),
        "idle 4 7 Asia/Tokyo"
    );
    rules.channel_chats_idle_minutes = Some(90);
    assert_eq!(in_force(&rules, SessionType::Direct, Some("x"), true), "daily 5 90 Asia/Tokyo");
    assert_eq!(in_force(&rules, SessionType::Direct, Some("x"), false), "daily 5 30 Asia/Tokyo");
    rules.channel_chats_idle_minutes = Some(0);
    assert_eq!(in_force(&rules, SessionType::Direct, Some("discord"), true), "idle 4 0 Asia/Tokyo");
}

/// Goal: a thread is one whatever it hangs on. Method: the types of chats.
#[test]
fn types_of_sessions() {
    assert_eq!(SessionType::of(None, false), SessionType::Direct);
    assert_eq!(SessionType::of(Some(ChatType::Channel), false), SessionType::Group);
    assert_eq!(SessionType::of(Some(ChatType::Group), true), SessionType::Thread);
}

/// Goal: an event says which rule decided, and nothing that did not. Method: the three modes.
#[test]
fn events_name_the_rule() {
    let json = |rule: &Rule| serde_json::to_string(&rule.to_event()).unwrap();
    assert_eq!(
        json(&Rule { idle_minutes: 9, ..daily(4, "Asia/Shanghai") }),
        r#"{"mode":"daily","atHour":4,"idleMinutes":9,"timeZone":"Asia/Shanghai"}"#
    );
    assert_eq!(json(&idle(60)), r#"{"mode":"idle","idleMinutes":60}"#);
    assert!(Zone::named("Mars/Olympus").is_err());
}

/// Goal: a run that began after the part expired is waited for too. Method: a part of yesterday, a run of a minute ago.
#[test]
fn a_young_run_is_waited_for() {
    let talk = part("2026-04-01T00:00:00Z", "2026-04-01T00:00:00Z");
    let since = at("2026-04-02T09:00:00Z");
    let run = Some(AtWork { run: "r", since });
    let standing = |now| idle(60).standing(talk, run, Duration::from_secs(3600), at(now));
    assert!(matches!(standing("2026-04-02T09:01:00Z"), Standing::Deferred { run: "r", .. }));
    assert!(matches!(standing("2026-04-02T10:00:00Z"), Standing::Expired { .. }));
}

/// Goal: a rule for a type that turns to another mode leaves the general one's idle minutes behind, also where only the
/// hour says which mode it is. Method: both spellings.
#[test]
fn another_mode_takes_no_idle_minutes() {
    let mut rules = Rules::none(Zone::utc());
    rules.general = said(Some(ResetMode::Idle), None, Some(30));
    rules.by_type.insert(SessionType::Group, said(None, Some(4), None));
    rules.by_type.insert(SessionType::Thread, said(Some(ResetMode::Daily), None, None));
    assert_eq!(in_force(&rules, SessionType::Group, None, false), "daily 4 0 UTC");
    assert_eq!(in_force(&rules, SessionType::Thread, None, false), "daily 4 0 UTC");
}
