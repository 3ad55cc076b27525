//! Workers that are killed at every event of a flow.

use annals_engine::session::event::RunStatus;
use serde_json::json;

use crate::house::House;

/// A flow: what asks for it.
type Flow = fn(&House);

/// Goes through a flow once undisturbed, and then once for every event of it: as soon as that event is in the log the
/// worker is killed, and another one is started. Gives the house of the first.
fn killed_at_every_event(agents: &[(&str, &[&str])], flow: Flow) -> House {
    let undisturbed = House::new(agents);
    flow(&undisturbed);
    let before = undisturbed.records().len();
    undisturbed.works();
    undisturbed.at_rest("undisturbed");
    let events = undisturbed.records().len() - before;
    let mut killed = 0;
    for n in 1..=events {
        let house = House::new(agents);
        flow(&house);
        let before = house.records().len();
        let worker = house.worker(&[]);
        killed += usize::from(house.until_event(before, n));
        worker.kill();
        house.works();
        house.at_rest(&format!("killed at event {n} of {events}"));
        let again = house.records().len();
        house.works();
        assert_eq!(house.records().len(), again, "another start appends something after {n}");
    }
    assert!(killed > events / 2, "of {events} events only {killed} were met");
    undisturbed
}

/// Goal: a child whose worker is killed at any moment has one end and one announce, delivered once at the most, and nobody
/// of it is left. Method: a child with an announce step, its requester in a chat with a sink.
#[test]
fn spawn() {
    let house = killed_at_every_event(&[("main", &["read", "say=42 words"])], |house| {
        let task = json!({ "task": "count" });
        assert_eq!(house.calls("sessions_spawn", &task, Some("telegram:7")), "accepted");
    });
    assert_eq!((house.starts(), house.count("run.finished")), (2, 2));
    delivered(&house, "announce");
}

/// Goal: an exchange whose worker is killed at any moment comes to its end once, its announce step too. Method: a send
/// with two rounds and an announce step.
#[test]
fn send() {
    let house = killed_at_every_event(&[("main", &["read", "say=fine"])], |house| {
        let args =
            json!({ "sessionKey": "telegram:8", "message": "how are you?", "timeoutSeconds": 0 });
        assert_eq!(house.calls("sessions_send", &args, Some("telegram:7")), "accepted");
    });
    assert_eq!((house.starts(), house.count("exchange.ended")), (4, 1));
    delivered(&house, "delivery");
}

/// Goal: a reply whose worker is killed at any moment is delivered once at the most, and its end is told. Method: an ask.
#[test]
fn ask() {
    let house = killed_at_every_event(&[("main", &["read", "say=fine"])], |house| {
        house.ask("7");
    });
    assert_eq!(house.starts(), 1);
    delivered(&house, "delivery");
}

/// Goal: what a killed worker left running is ended before its run is, and whoever wants that run to end is heard by the
/// next worker. Method: an agent that does not listen, with a process in a session of its own; with and without a wish.
#[test]
fn left_running() {
    for wished in [false, true] {
        let house = House::new(&[("main", &["session=pid", "say=here", "deaf", "forever"])]);
        let run_id = house.ask("7");
        let worker = house.worker(&[]);
        house.until("run.output", 1);
        worker.kill();
        if wished {
            let run = json!({ "runId": run_id });
            assert_eq!(house.calls("runs_cancel", &run, None), "kill_requested");
        }
        house.works();
        house.at_rest("left running");
        let (status, reason) =
            if wished { (RunStatus::Killed, "kill") } else { (RunStatus::Lost, "worker_gone") };
        assert_eq!(house.ends(), [(status, Some(reason.to_owned()))]);
    }
}

/// What was to go out of an undisturbed flow came to its sink.
fn delivered(house: &House, what: &str) {
    let steps = ["attempted", "delivered"].map(|step| house.count(&format!("{what}.{step}")));
    assert_eq!((steps, house.given().len()), ([1, 1], 1));
}
