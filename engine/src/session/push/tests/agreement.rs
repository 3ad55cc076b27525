//! What a view shows of a session's time, against what the next push does.

use super::*;
use crate::session::index::Lens;

/// A small generator (xorshift, Marsaglia 2003): the same seed gives the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[usize::try_from(self.below(these.len() as u64)).unwrap()]
    }

    fn rule(&mut self) -> Override {
        Override {
            at_hour: (self.below(2) == 0).then(|| u8::try_from(self.below(24)).unwrap()),
            idle_minutes: (self.below(2) == 0).then(|| self.below(200)),
            ..Override::default()
        }
    }

    fn rules(&mut self) -> TimeRules {
        let mut rules = TimeRules::none();
        rules.resets.general = self.rule();
        if self.below(2) == 0 {
            let sort = self.one_of(&[SessionType::Direct, SessionType::Group, SessionType::Thread]);
            rules.resets.by_type.insert(sort, self.rule());
        }
        if self.below(3) == 0 {
            rules.resets.by_channel.insert("pi".to_owned(), self.rule());
        }
        if self.below(4) == 0 {
            rules.resets.channel_chats_idle_minutes = Some(self.below(200));
        }
        rules
    }

    /// A time of an event's own, on the day of the scene, or none.
    fn at(&mut self) -> String {
        match self.below(3) {
            0 => String::new(),
            _ => format!("'at':'2026-04-01T{:02}:30:00.000000Z',", self.below(24)),
        }
    }

    /// What may have happened to a session: opened with or without much, or its opening is lost.
    fn live(&mut self, scene: &Scene, key: &str) {
        let more = [",'threadId':'7'", ",'channel':'pi'", ",'channel':'other'", ""];
        if self.below(4) > 0 {
            let (at, more) = (self.at(), self.one_of(&more));
            let opened = format!(
                "{{{at}'sessionId':'p','kind':'other','agentId':'main'{more},'spawnDepth':0}}"
            );
            scene.event(key, "session.opened", &opened);
        }
        for _ in 0..self.below(6) {
            minutes(scene, self.below(300));
            let (kind, data) = self.one_of(&[
                ("session.reset", "'sessionId':'q','previousSessionId':'p','reason':'manual','effectiveAt':'2026-04-01T00:00:00.000000Z'"),
                ("session.resumed", "'sessionId':'p','previousSessionId':'q'"),
                ("session.patched", "'sessionId':'p','set':{'chatType':'group','lastChannel':'other'}"),
                ("turn", "'sessionId':'p','role':'assistant','from':'internal','content':'x'"),
                ("turn", "'sessionId':'p','role':'user','from':'external','content':'x'"),
                ("turn", "'sessionId':'q','role':'user','from':'external','content':'x'"),
            ]);
            scene.event(key, kind, &format!("{{{}{data}}}", self.at()));
        }
        minutes(scene, self.below(2_000));
    }
}

/// Goal: a view shows a session as expired exactly when the next human turn begins another part, and from the same
/// moment. Method: random lives of sessions that were pushed or imported, with times of their own, resumed and renamed;
/// random rules by type and channel; the row before a push, and the event of it.
#[test]
fn views_and_pushes_agree() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut resets = 0;
    for round in 0..1_000 {
        let scene = Scene::new();
        let key = random.one_of(&["cli:a", "pi:a"]);
        let rules = random.rules();
        random.live(&scene, key);
        let lens = Lens { rules: &rules, now: scene.clock.now() };
        let row = scene.sessions().row_at(&StreamName::new(key).unwrap(), &lens);
        let expired = row.and_then(|row| row.expired_at);
        let (channel, chat) = key.split_once(':').unwrap();
        let pushed = run_under(&scene, &user(channel, chat, "now"), &rules).unwrap();
        let log = log(&scene, key);
        assert_eq!(expired.is_some(), pushed.reset.is_some(), "round {round}: {log:#?}");
        if let Some(expired) = expired {
            let effective = format!("\"effectiveAt\":\"{expired}\"");
            assert!(log[log.len() - 2].contains(&effective), "round {round}: {expired} {log:#?}");
            resets += 1;
        }
    }
    assert!((100..900).contains(&resets), "{resets}");
}
