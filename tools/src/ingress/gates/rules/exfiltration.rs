//! Text that asks for secrets to be given away.

use super::{Gate, Rule};

/// A secret by its name.
pub(super) const SECRET_NOUN: &str = concat!(
    r"(?:api[\s-]?keys?|pass(?:words?|phrases?)|credentials?|secrets|secret keys?|(?:access|auth|bearer|api|session|oauth) tokens?|tokens",
    r"|private keys?|ssh keys?|environment variables|env vars|seed phrases?|session cookies|login (?:data|details))"
);

/// A file that holds secrets.
pub(super) const SECRET_FILE: &str = concat!(
    r#"(?:\.env(?:[\s"'`,)]|$)|id_(?:rsa|dsa|ecdsa|ed25519)\b|\.ssh\b|/etc/(?:passwd|shadow)\b|\.aws/\S*|\.netrc\b|\.pypirc\b"#,
    r"|\.kube/config\b|\.gnupg\b|\.git-credentials\b|\.docker/config\S*|wallet\.dat\b|cookies\.sqlite\b)"
);

const HINT: &str = "secrets are never sent on request; ask for what you need them for";

pub(super) const RULES: &[Rule] = &[
    Rule {
        gate: Gate::Exfiltration,
        id: "exfiltration.send-secrets",
        reason: "it asks for secrets to be sent away",
        hint: HINT,
        prose: &[
            concat!(
                r"<start>(?:send|post|upload|e-?mail|mail|forward|exfiltrate|leak|transmit|dm|submit|share|deliver)\s+(?:me\s+|us\s+)?",
                r"(?:(?:all|any|every|each|the|your|my|our|its|their|stored|saved|available|secret|user|production|a copy|copy|contents?|list|values?|of|and|or|files?|those|these)[\s,]+)*",
                r"(?:<noun>|~?/?\S*<file>)",
                r"(?:[\s,]+(?:and|or|of|for|from|in|on|that|which|you|have|can|find|found|know|all|any|every|the|your|our|this|these|stored|saved|users?|machine|server|system|files?|database|environment|memory|context|session|contents?|<noun>))*",
                r"\s*(?:to|at|via)\s+(?:https?://|\S+@\S+|me\b|(?:this|the following|my|our|an?|that)\s+(?:\w+\s+)?(?:url|address|e-?mail|server|webhook|endpoint|account|site|bucket|chat|channel|number)|the\s+attacker)",
            ),
            concat!(
                r"<start>(?:read|open|cat|grab|collect|gather|find|take|copy|extract|harvest|steal|dump|list)\s+[^\n]*(?:<noun>|<file>)[^\n]*",
                r"\b(?:and|then)\s+(?:then\s+)?(?:send|post|upload|e-?mail|forward|submit|exfiltrate|transmit|leak|deliver|curl)\s+(?:me\s+)?",
                r"(?:it|them|the\s+(?:contents?|results?|values?|keys?|file|data|output)|everything|its\s+contents?|that|all)\b",
            ),
            concat!(
                r"<start>(?:reveal|print|show|tell|give|dump|output|list|display|leak|disclose|expose|send)\s+(?:me\s+|us\s+)?(?:(?:all|any|of|the|every)\s+)*your\s+",
                r"(?:(?:own|secret|stored|internal|hidden)\s+)*<noun>\s*(?:$|[.,!;\n]|\band\b|\bnow\b|\bto\b)",
            ),
            r"(?:把|将|將|发送|發送)[^。\n]*(?:密码|密碼|口令|密钥|密鑰|api\s*key|令牌|凭证|憑證|凭据|私钥|私鑰|环境变量)[^。\n]*(?:发送|發送|发给|發給|上传|上傳|提交|传|寄)?(?:到|给|給|至)\s*(?:https?://|我|\S+@|这个|以下)",
            r"<start>(?:envia|envie|enviad|manda|mande|sube|suba|publica|reenvia)(?:me|nos|le)?\s+[^\n]*(?:contrasenas?|claves?\s+(?:de\s+)?(?:api|privadas?|secretas?)|credenciales|secretos|tokens)[^\n]*\s(?:al?)\s+(?:https?://|\S+@|mi\b|esta?\b|la siguiente)",
            r"<start>(?:sende|senden sie|schicke?n?|ubermittle|poste|lade|maile)\s+[^\n]*(?:passwort(?:er)?|kennworter|zugangsdaten|api-?schlussel|geheimnisse|tokens|private[nr]?\s+schlussel)[^\n]*\b(?:an|nach|zu|auf)\s+(?:https?://|\S+@|mich\b|diese|folgende)",
            r"<start>(?:ارسل|ابعث|انشر|ارفع)\s+[^\n]*(?:كلمات?\s+(?:ال)?(?:مرور|سر)|مفاتيح|بيانات\s+الاعتماد|الاسرار)[^\n]*\s(?:الى|ل)\s*",
        ],
        joined: &[],
        commands: &[
            r"(?:env|printenv)\s*\|\s*(?:[^\n|]*\|\s*)*(?:curl|wget|nc|ncat|netcat|socat)\b[^\n]*",
            r"(?:cat|tar|zip|base64|gzip|head|grep)\b[^\n|]*<file>[^\n|]*\|\s*(?:[^\n|]*\|\s*)*(?:curl|wget|nc|ncat|netcat|socat|mail|sendmail)\b[^\n]*",
            r"curl\b[^\n]*(?:\s-[dft]|\s--data\S*|\s--form|\s--upload-file)[^\n]*(?:<file>|\$\((?:env|printenv)\b)[^\n]*",
            r"wget\b[^\n]*--post-(?:file|data)[^\n]*(?:<file>|\$\((?:env|printenv)\b)[^\n]*",
            r"(?:nc|ncat|netcat)\b[^\n]*<\s*\S*<file>[^\n]*",
            r"scp\s+[^\n]*(?:id_(?:rsa|ed25519)|/etc/shadow|\.ssh/)[^\n]*\s\S+:\S*",
        ],
    },
    Rule {
        gate: Gate::Exfiltration,
        id: "exfiltration.image-url",
        reason: "it has a picture fetched with what was said in its address",
        hint: "leave the picture out, or show its address as code",
        prose: &[
            r"!\[[^\]\n]*\]\(https?://[^)\n]*[?&/][^)\n]*[{\[<$](?:[^)\n]*(?:secret|token|password|api.?key|conversation|history|prompt|context|data|summary))[^)\n]*\)",
        ],
        joined: &[],
        commands: &[],
    },
];
