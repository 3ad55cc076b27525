//! Secrets as they stand in texts, and texts without any.

use super::*;

fn check(text: &str, expect: &str) {
    assert_eq!(Mask::default().text(text), expect, "{text:?}");
}

/// Goal: every sort of secret is masked by its rule, and what stands around stays. Method: one or more of each.
#[test]
fn secrets() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N";
    for (text, expect) in [
        (
            "key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nend",
            "key:\n[masked:private-key]\nend",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", "[masked:private-key]"),
        (&format!("use {jwt}, please"), "use [masked:jwt], please"),
        ("Authorization: Bearer abc123.def-456", "Authorization: Bearer [masked:authorization]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [masked:authorization]"),
        (&format!("Bearer {jwt}"), "Bearer [masked:jwt]"),
        ("sk-proj-abcdefghijklmnop1234", "[masked:openai-key]"),
        ("(ghp_abcdefghijklmnopqrstuvwxyz0123456789)", "([masked:github-token])"),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "[masked:github-token]"),
        ("xoxb-123456789012-abcdefghijkl", "[masked:slack-token]"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id [masked:aws-key]."),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[masked:google-key]"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "[masked:webhook-secret]"),
        ("postgres://me:hunter2@db/x", "postgres://me:[masked:url-password]@db/x"),
        ("password: hunter2", "password: [masked:assignment]"),
        (
            "My password is not here. Password=swordfish\n",
            "My password is not here. Password=[masked:assignment]\n",
        ),
        ("export API_KEY=\"a b c d\"", "export API_KEY=\"[masked:assignment]\""),
        ("DB_PASSWORD='it is $ecret'", "DB_PASSWORD='[masked:assignment]'"),
        ("{'client_secret': 'abcd-efgh'}", "{'client_secret': '[masked:assignment]'}"),
        (
            "https://x.example/?token=abcdef&next=1",
            "https://x.example/?token=[masked:assignment]&next=1",
        ),
        ("secret: aB3dE5fG7", "secret: [masked:assignment]"),
        ("token = ghp_abcdefghijklmnopqrstuvwxyz0123456789", "token = [masked:github-token]"),
        (
            "a_token := \"abcdef\" password: x9y8z7",
            "a_token := \"[masked:assignment]\" password: [masked:assignment]",
        ),
        (r#"{\"password\": \"hunter2\"}"#, r#"{\"password\": \"[masked:assignment]\"}"#),
    ] {
        check(text, expect);
        assert_eq!(Mask::default().text(expect), expect, "masked twice");
    }
}

/// Goal: what only speaks of secrets, and code that handles them, stays. Method: such texts.
#[test]
fn no_secrets() {
    for text in [
        "",
        "A basic understanding of bearer instruments",
        "Basic Authentication is simple",
        "a basic CLAUDE.md file",
        "result.apiKey = args[++i];",
        "token: the smallest unit of text",
        "let token = next_token();",
        "self.token = parser.token;",
        "secret: Option<String>",
        "token: String",
        "password: ${DB_PASSWORD}",
        "password=<your password>",
        "API_KEY=********",
        "password: null",
        "the task-force and risk-averse people of ASIA",
        "eyJ is how they begin",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "http://localhost:8080/a@b",
        "mailto:me@example.com",
        "12 tokens: 4 in, 8 out",
        "Is there a password? No.",
    ] {
        check(text, text);
    }
}

/// Goal: values that are named are masked wherever they stand, also where JSON spells them otherwise. Method: values with
/// letters that JSON escapes, one inside another, and one that is too short.
#[test]
fn named_values() {
    let mask = Mask::with(["tr0ub", "tr0ub4dor", "a\"b\\c", "gehe\u{ef}m", "abc", "line\nbreak"]);
    assert_eq!(mask.text("x tr0ub4dor tr0ub abc"), "x [masked:value] [masked:value] abc");
    for (json, expect) in [
        (r#"{"a":"say a\"b\\c !"}"#, r#"{"a":"say [masked:value] !"}"#),
        (r#"{"a":"gehe\u00efm"}"#, r#"{"a":"[masked:value]"}"#),
        (r#"["line\nbreak","\u0074r0ub"]"#, r#"["[masked:value]","[masked:value]"]"#),
    ] {
        assert_eq!(mask.json(json).as_deref(), Some(expect));
    }
    assert_eq!(mask.json(r#"{"a":"abc \u00e9"}"#), None);
}

/// Goal: JSON stays what it was but for the strings that hold a secret, and members with a telling name are masked.
/// Method: content as it is stored, with odd spelling around.
#[test]
fn json_stays_json() {
    for (json, expect) in [
        (
            r#"[ {"type":"text" , "text":"password: hunter2\n\u00e9"}, {"n":1.50,"u":"\u00e9"} ]"#,
            r#"[ {"type":"text" , "text":"password: [masked:assignment]\né"}, {"n":1.50,"u":"\u00e9"} ]"#,
        ),
        (
            r#"{"input":{"api_key":"abcdefgh","clientSecret":["one-two","xy"],"token":7,"maxTokens":"many"}}"#,
            r#"{"input":{"api_key":"[masked:assignment]","clientSecret":["[masked:assignment]","xy"],"token":7,"maxTokens":"many"}}"#,
        ),
        (
            r#"{"arguments":"{\"password\":\"hunter2\"}"}"#,
            r#"{"arguments":"{\"password\":\"[masked:assignment]\"}"}"#,
        ),
        (r#"{"key":"-----BEGIN PRIVATE KEY-----\nabc\n"}"#, r#"{"key":"[masked:private-key]"}"#),
        (r#""Bearer \u0061bc12345""#, r#""Bearer [masked:authorization]""#),
    ] {
        let masked = Mask::default().json(json).unwrap();
        assert_eq!(masked, expect);
        serde_json::from_str::<serde_json::Value>(&masked).unwrap();
    }
    for json in [r#"{"a":"b","token":"","secret":"***"}"#, "\"", r#"{"token"#, r#""tok\"#, "12"] {
        assert_eq!(Mask::default().json(json), None, "{json}");
    }
    let content = Json::from_text(r#""sk-abcdefghijklmnopqrst""#).unwrap();
    assert_eq!(Mask::default().content(&content).unwrap().as_str(), r#""[masked:openai-key]""#);
}
