//! Replies as agents give them, whole and in pieces.

use super::*;

/// What becomes of a reply, in one line.
fn told(silence: &Silence<'_>) -> String {
    match silence {
        Silence::Silent { token, rule } => format!("silent {token} by {rule}"),
        Silence::Empty => "empty".to_owned(),
        Silence::Says { text, cuts } => {
            let cuts: Vec<String> =
                cuts.iter().map(|cut| format!(" - {} {}", cut.rule, cut.token)).collect();
            format!("{text:?}{}", cuts.concat())
        }
    }
}

fn check(reply: &str, expect: &str) {
    let silence = Silence::of(reply, &Tokens::default(), Lane::Foreground);
    assert_eq!(told(&silence), expect, "{reply:?}");
}

fn unchanged(reply: &str) {
    check(reply, &format!("{reply:?}"));
}

/// Goal: a token and nothing else is silence, in any case, whatever of it is not seen. Method: each token, dressed in
/// several ways.
#[test]
fn a_token_alone_is_silence() {
    for token in Tokens::KNOWN {
        check(token, &format!("silent {token} by exact"));
        let small = token.to_lowercase();
        check(&format!(" \n\t{small}\r\n"), &format!("silent {small} by exact"));
        check(&format!("\u{feff}{token}\u{200b}\u{a0}"), &format!("silent {token} by exact"));
        check(&format!("**{token}"), &format!("silent {token} by dressed"));
        check(&format!("__{token}__"), &format!("silent {token} by dressed"));
        check(&format!("[[reply_to_current]] {token}"), &format!("silent {token} by dressed"));
        check(&format!("[[ reply_to: 42 ]]\n{token}"), &format!("silent {token} by dressed"));
        check(&format!("{token}\n\n{token}"), &format!("silent {token} by dressed"));
    }
    check("NO\u{a0}REPLY", "silent NO\u{a0}REPLY by exact");
    check("NO\u{200b}_REPLY", "silent NO\u{200b}_REPLY by exact");
}

/// Goal: what only speaks of a token, or holds it in a word, goes out as it is. Method: such replies.
#[test]
fn real_text_is_never_lost() {
    for reply in [
        "The token NO_REPLY means stay quiet.",
        "SILENT night",
        "Please: no reply needed",
        "SILENTLY",
        "```\nNO_REPLY\n```",
        "`NO_REPLY`",
        "\"NO_REPLY\"",
        "interject.NO_REPLY",
        "Done. NO_REPLY",
        "NO_REPLY.",
        "NO_REPLY means stay quiet",
        "NO_REPLYs are ignored",
        "NO_REPLYTOKEN",
        "NO_REPLYX",
        "NO  REPLY",
        "NO\nREPLY",
        "[[Home]] NO_REPLY",
        "[[reply_to_current]] Hello",
        "  indented\n\n",
        "a\nNO_REPLY\nb",
        "****NO_REPLY",
        "NO",
        "[",
        "[[",
        "**",
    ] {
        unchanged(reply);
    }
}

/// Goal: a token alone on the first or last line, or glued to a sentence, is cut and told; the text stays. Method: such
/// replies.
#[test]
fn a_token_beside_text_is_cut() {
    check("Backup done.\n\nNO_REPLY", "\"Backup done.\" - last_line NO_REPLY");
    check("Done.  \r\n**no_reply**\r\n", "\"Done.\" - last_line no_reply");
    check("a\nNO_REPLY\n\n[SILENT]\n", "\"a\" - last_line NO_REPLY - last_line [SILENT]");
    check("NO_REPLY\n\n  Real text\n", "\"  Real text\\n\" - first_line NO_REPLY");
    check("NO_REPLY\na\nNO REPLY", "\"a\" - first_line NO_REPLY - last_line NO REPLY");
    check("NO_REPLYThe user is asking", "\"The user is asking\" - glued NO_REPLY");
    check("[SILENT]I think", "\"I think\" - glued [SILENT]");
    check("NO_REPLYNo_reply", "silent NO_REPLY by dressed");
    check("NO_REPLY\n[[reply_to:1]] Hi", "\"[[reply_to:1]] Hi\" - first_line NO_REPLY");
    check(
        "[[reply_to_current]] NO_REPLY\n\nReal text",
        "\"[[reply_to_current]] Real text\" - first_line NO_REPLY",
    );
}

/// Goal: what has no text is no silence. Method: nothing, blanks, a tag alone.
#[test]
fn an_empty_reply_is_not_silence() {
    for reply in ["", " \n\t", "\u{200b}", "[[reply_to_current]]"] {
        check(reply, "empty");
    }
}

/// Goal: a background lane that may be silent by its edges is, and says so; no other lane is. Method: both lanes, both
/// rules.
#[test]
fn edges_of_background_lanes() {
    let edge = Tokens::new([], Background::Edge);
    for (reply, expect) in [
        ("NO_REPLY: nothing to do", "silent NO_REPLY by leading_token"),
        ("Backup done. NO_REPLY", "silent NO_REPLY by trailing_token"),
        ("Backup done.\nno_reply", "silent no_reply by trailing_token"),
        ("[SILENT]nothing", "silent [SILENT] by leading_token"),
        ("**NO_REPLY** as nothing changed", "silent NO_REPLY by leading_token"),
        ("SILENTLY", "\"SILENTLY\""),
        ("Please: no reply needed", "\"Please: no reply needed\""),
        ("nobody sent me a no reply", "\"nobody sent me a no reply\""),
        ("I saw NO_REPLY there", "\"I saw NO_REPLY there\""),
        ("NO_REPLY", "silent NO_REPLY by exact"),
    ] {
        assert_eq!(told(&Silence::of(reply, &edge, Lane::Background)), expect, "{reply:?}");
        let asked = Silence::of(reply, &edge, Lane::Foreground);
        assert_eq!(asked, Silence::of(reply, &Tokens::default(), Lane::Foreground), "{reply:?}");
        assert_eq!(asked, Silence::of(reply, &Tokens::default(), Lane::Background), "{reply:?}");
    }
}

/// Goal: more tokens can be named, in any script, and none that would be silence by accident. Method: some of each.
#[test]
fn tokens_of_a_setting() {
    let tokens =
        Tokens::new([" Ruhe ", "ΣΙΓΉ", "", " ", "two\nlines", "no_reply"], Background::Exact);
    let of = |reply: &str| told(&Silence::of(reply, &tokens, Lane::Foreground));
    assert_eq!(of("RUHE"), "silent RUHE by exact");
    assert_eq!(of("σιγή"), "silent σιγή by exact");
    assert_eq!(of("NO_REPLY"), "silent NO_REPLY by exact");
    assert_eq!(of("two\nlines"), "\"two\\nlines\"");
    assert_eq!(of(""), "empty");
    assert_eq!(of("NO_REPLYRuhe"), "silent NO_REPLY by dressed");
}

/// Goal: control words hold trimmed and in their own case only. Method: spellings.
#[test]
fn control_words() {
    for (reply, expect) in [
        ("REPLY_SKIP", Some(ControlWord::ReplySkip)),
        (" REPLY_SKIP\n", Some(ControlWord::ReplySkip)),
        ("\u{feff}ANNOUNCE_SKIP\u{200b}", Some(ControlWord::AnnounceSkip)),
        ("REPLY_SKIP.", None),
        ("I say REPLY_SKIP", None),
        ("reply_skip", None),
        ("", None),
    ] {
        assert_eq!(ControlWord::of(reply), expect, "{reply:?}");
    }
}

fn pieces_say(tokens: &Tokens, lane: Lane, pieces: &[&str]) {
    let reply = pieces.concat();
    let mut holdback = Holdback::new(tokens, lane);
    let mut shown = String::new();
    for piece in pieces {
        shown.push_str(&holdback.push(piece));
    }
    let ending = holdback.finish();
    shown.push_str(&ending.text);
    let whole = Silence::of(&reply, tokens, lane);
    assert_eq!(shown, whole.outbound(), "{pieces:?}");
    assert_eq!(
        ending.silent.as_ref().map(|(token, _)| token.as_str()),
        whole.token(),
        "{pieces:?}"
    );
}

/// Goal: what is shown of a growing reply is what goes out of the whole one, wherever it is cut. Method: replies put
/// together from everything that matters to the decision, cut at every place, at every two places, and into characters.
#[test]
fn every_split_shows_the_same() {
    let words = [
        "NO_REPLY",
        "no reply",
        "[SILENT]",
        "NO",
        "The user",
        "\n",
        " ",
        "**",
        "_",
        "\u{200b}",
        "[[reply_to_current]]",
        "[[",
        "é",
    ];
    let mut replies = vec![String::new()];
    for _ in 0..3 {
        let longer = replies.iter().flat_map(|r| words.map(|word| format!("{r}{word}")));
        replies = replies.iter().cloned().chain(longer).collect();
        replies.sort();
        replies.dedup();
    }
    let both = [Tokens::default(), Tokens::new(["Ruhe", "NO_REPLY NOW"], Background::Edge)];
    for reply in &replies {
        for tokens in &both {
            for lane in [Lane::Foreground, Lane::Background] {
                split_everywhere(tokens, lane, reply);
            }
        }
    }
}

fn split_everywhere(tokens: &Tokens, lane: Lane, reply: &str) {
    let ends: Vec<usize> = reply.char_indices().map(|(at, _)| at).chain([reply.len()]).collect();
    let characters: Vec<&str> = ends.windows(2).map(|at| &reply[at[0]..at[1]]).collect();
    pieces_say(tokens, lane, &characters);
    for at in &ends {
        pieces_say(tokens, lane, &[&reply[..*at], &reply[*at..]]);
    }
    if let [.., before, last] = ends[..]
        && reply.len() > 4
    {
        let middle = ends[ends.len() / 2];
        pieces_say(
            tokens,
            lane,
            &[
                &reply[..middle],
                &reply[middle..before.max(middle)],
                &reply[before.max(middle)..last],
            ],
        );
    }
}

/// Goal: the same of longer replies, drawn by chance from the same words, in pieces drawn by chance. Method: a generator
/// with a fixed seed.
#[test]
fn chance_splits_show_the_same() {
    let words = [
        "NO_REPLY",
        "No",
        " ",
        "\n",
        "\n\n",
        "no reply",
        "text",
        "[SILENT]",
        "*",
        "SILENT",
        "_RE",
        "T",
        "[[reply_to:1]] ",
        "ß",
        "\u{2028}",
        "REPLY_",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % n
    };
    let tokens = Tokens::new(["NO_REPLY NO_REPLY", "T"], Background::Exact);
    for _ in 0..20_000 {
        let drawn: Vec<&str> = (0..below(12)).map(|_| words[below(words.len())]).collect();
        let reply = drawn.concat();
        let mut pieces = Vec::new();
        let mut rest = reply.as_str();
        while !rest.is_empty() {
            let ends: Vec<usize> = rest.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
            let (piece, more) = rest.split_at(ends[below(ends.len().min(9))]);
            pieces.push(piece);
            rest = more;
        }
        pieces_say(&tokens, Lane::Foreground, &pieces);
    }
}

/// Goal: what goes out is never a token. Method: the outbound text of chance replies, decided on again.
#[test]
fn what_goes_out_is_no_token() {
    let words = ["NO_REPLY", "\n", " ", "**", "[[reply_to_current]]", "Text", "T", "silent"];
    let tokens = Tokens::new(["Text"], Background::Exact);
    for number in 0..8_u32.pow(6) {
        let reply: String =
            (0..6).map(|digit| words[(number / 8_u32.pow(digit) % 8) as usize]).collect();
        let outbound = Silence::of(&reply, &tokens, Lane::Foreground).outbound().to_owned();
        let again = Silence::of(&outbound, &tokens, Lane::Foreground);
        assert!(again.token().is_none(), "{reply:?} -> {outbound:?}");
        assert_eq!(again.outbound(), outbound, "{reply:?}");
    }
}

/// Goal: only what may still become a token waits. Method: pieces as they come from models.
#[test]
fn little_is_held_back() {
    let tokens = Tokens::default();
    let shown = |pieces: &[&str]| {
        let mut holdback = Holdback::new(&tokens, Lane::Foreground);
        let mut all: Vec<String> = pieces.iter().map(|piece| holdback.push(piece)).collect();
        all.push(holdback.finish().text);
        all
    };
    assert_eq!(shown(&["NO", "_RE", "PLY"]), ["", "", "", ""]);
    assert_eq!(shown(&["NO ", "REPLY"]), ["", "", ""]);
    assert_eq!(shown(&["[SIL", "ENT]"]), ["", "", ""]);
    assert_eq!(shown(&["NO", "PE, fine"]), ["", "NOPE, fine", ""]);
    assert_eq!(shown(&["N", "o", "w"]), ["", "", "Now", ""]);
    assert_eq!(shown(&["Done.\n", "\nNO", "_REPLY\n"]), ["Done.", "", "", ""]);
    assert_eq!(shown(&["Done.\n", "\nNO", " way"]), ["Done.", "", "\n\nNO way", ""]);
    assert_eq!(shown(&["Hello, ", "NO"]), ["Hello,", " NO", ""]);
}
