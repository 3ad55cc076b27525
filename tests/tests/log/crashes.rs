//! A crash at every call of a script, and at every byte of a log.

use std::collections::BTreeSet;

use annals_engine::store::{Durability, EventStore, Health, NewEvent};
use annals_tests::disk::{Image, Kernel, Loss, SimDisk};
use annals_tests::history::{Found, Told, Wrong};

use super::machine::{Machine, active, event};

/// How many seeds a state is crashed with, and how many images it may have for all of them to be looked at instead: more
/// when more runs are asked for.
fn effort() -> (u64, usize) {
    if std::env::var_os("ANNALS_SEEDS").is_some() { (64, 4_096) } else { (8, 64) }
}

/// What the scripts append: single events, a batch over two streams, one that is only written.
fn batches() -> Vec<(Vec<NewEvent>, Durability)> {
    let single = |text, bytes| (vec![event("s1", text, bytes)], Durability::Synced);
    vec![
        single("a", 5),
        single("b", 600),
        (
            vec![event("s1", "c1", 5), event("s2", "c2", 900), event("s2", "c3", 5)],
            Durability::Synced,
        ),
        (vec![event("s3", "d", 60)], Durability::Buffered),
        single("e", 300),
        (vec![event("s1", "f1", 700), event("s3", "f2", 700)], Durability::Synced),
        single("g", 5),
    ]
}

/// Opens a store and appends, with what callers had been told by the time of each call.
fn played(seed: u64) -> (Machine, Vec<Image>, Vec<(usize, Told)>) {
    let m = Machine::new(seed).rolling_at(2_500);
    m.disk.keep_images();
    let mut told = vec![(0, Told::default())];
    let client = m.open().unwrap();
    for (batch, durability) in batches() {
        let mut under_way = m.told().clone();
        let number = under_way.send(batch.clone());
        under_way.begin(client.pid, number);
        told.push((m.disk.calls(), under_way));
        client.append_with(batch, durability).unwrap();
        told.push((m.disk.calls(), m.told().clone()));
    }
    drop(client);
    let images = m.disk.take_images();
    (m, images, told)
}

fn told_at(told: &[(usize, Told)], number: usize) -> Told {
    told.iter().rev().find(|(calls, _)| *calls <= number).unwrap().1.clone()
}

/// Recovers on a machine in this state and checks it against what was told and what was there.
fn recover(m: &Machine, told: &Told, power: bool, before: &Found, image: &Kernel) -> Wrong {
    let m = m.on(SimDisk::booted(image.clone()));
    let mut told = told.clone();
    if power {
        told.power_loss();
    } else {
        told.all_died();
    }
    *m.told() = told;
    m.check_recovery(Some(before), &[image])
}

/// The power fails before each call: a few seeds, both extremes, and every image there can be when they are few.
#[test]
fn power_loss_at_every_call() {
    let (m, images, told) = played(1);
    let (seeds, limit) = effort();
    let mut recoveries = 0;
    for image in &images {
        let told = told_at(&told, image.number);
        let before = Found::read(image.kernel());
        let losses = (0..seeds).map(Loss::Seed).chain([Loss::Everything, Loss::Nothing]);
        let after: Vec<Kernel> = match image.kernel().every_power_loss(limit) {
            Some(all) => all,
            None => losses.map(|loss| image.kernel().after_power_loss(&loss)).collect(),
        };
        for (n, kernel) in after.into_iter().enumerate() {
            let wrong = recover(&m, &told, true, &before, &kernel);
            assert_eq!(
                wrong,
                Wrong::new(),
                "image {n} before call {}: {:?}",
                image.number,
                image.call
            );
            recoveries += 1;
        }
    }
    assert!(recoveries > images.len(), "{recoveries} recoveries of {} images", images.len());
}

/// The process is killed before each call and inside each write. What was only written is still there.
#[test]
fn kill_at_every_call() {
    let (m, images, told) = played(1);
    for image in &images {
        let told = told_at(&told, image.number);
        let len = image.write_len();
        let lefts: BTreeSet<usize> = [0, 1, len / 3, len / 2, len.saturating_sub(1), len].into();
        for left in lefts {
            let kernel = image.partly(left);
            let before = Found::read(&kernel);
            let wrong = recover(&m, &told, false, &before, &kernel);
            let call = &image.call;
            assert_eq!(wrong, Wrong::new(), "{left} bytes into call {}: {call:?}", image.number);
        }
    }
}

/// The power fails at each call of a recovery, and the recovery after that is checked against the first crash.
#[test]
fn power_loss_at_every_call_of_a_recovery() {
    let (m, images, told) = played(1);
    let writes = images.iter().filter(|image| image.call.writes("log/") && image.write_len() > 0);
    for image in writes {
        let told = told_at(&told, image.number);
        let before = Found::read(image.kernel());
        let torn = SimDisk::booted(image.partly(image.write_len() * 2 / 3));
        torn.power_loss(&Loss::Nothing);
        let first = torn.look(Kernel::clone);
        let recovering = m.on(torn);
        recovering.disk.keep_images();
        drop(recovering.open().unwrap());
        for inside in recovering.disk.take_images() {
            for loss in (0..3).map(Loss::Seed).chain([Loss::Everything, Loss::Nothing]) {
                let machine = m.on(SimDisk::booted(inside.kernel().after_power_loss(&loss)));
                let mut told = told.clone();
                told.power_loss();
                *machine.told() = told;
                let wrong = machine.check_recovery(Some(&before), &[&first]);
                let calls = (image.number, inside.number);
                assert_eq!(wrong, Wrong::new(), "{loss:?} in {calls:?}: {:?}", inside.call);
            }
        }
    }
}

/// A small log cut at each offset. With the floor in `lock.sync`, every cut below it is a loss that is reported, and not
/// a byte changes. Without it, whole batches stay, the rest is set aside, and the next append works.
#[test]
fn cut_at_every_byte() {
    let m = Machine::new(1);
    let client = m.open().unwrap();
    client.append(vec![event("s1", "a", 5)]).unwrap();
    client.append(vec![event("s1", "b1", 5), event("s2", "b2", 5)]).unwrap();
    client.append(vec![event("s2", "c", 5)]).unwrap();
    drop(client);
    let whole = m.disk.look(Kernel::clone);
    let all = Found::read(&whole);
    let name = active(&whole);
    let bytes = whole.bytes(&name).unwrap().to_vec();
    for cut in 0..bytes.len() {
        let mut kernel = whole.clone();
        kernel.put(&name, bytes[..cut].to_vec());
        let with_floor = m.on(SimDisk::booted(kernel.clone()));
        let missing = all.lines.iter().find(|line| line_end(line) > cut).unwrap();
        let log = with_floor.open().unwrap().log;
        let Health::Damaged(damages) = log.health().unwrap() else { panic!("cut at {cut}") };
        let seqs = damages.iter().filter_map(|damage| damage.seqs).map(|(first, _)| first).min();
        assert!(seqs.is_some_and(|first| first <= missing.record.seq), "{cut}: {damages:?}");
        assert_eq!(with_floor.disk.look(|now| now.bytes(&name).unwrap().len()), cut);

        kernel.take("lock.sync");
        kernel.take("lock.append");
        let without = m.on(SimDisk::booted(kernel.clone()));
        *without.told() = Told::default();
        let client = without.open().unwrap();
        let before = Found::read(&kernel);
        let wrong = without.check(&client.log, Some(&before), &[&kernel]);
        assert_eq!(wrong, Wrong::new(), "cut at {cut}");
        client.append(vec![event("s9", "after", 5)]).unwrap();
    }
}

fn line_end(line: &annals_tests::history::FoundLine) -> usize {
    line.offset + line.record.to_line().len()
}
