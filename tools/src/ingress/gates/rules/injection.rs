//! Text that sets itself above what the agent was told.

use super::{Gate, Rule};

const HINT: &str = "say what you want done; text that only speaks of such orders passes when it is quoted or shown as code";

pub(super) const RULES: &[Rule] = &[
    Rule {
        gate: Gate::Injection,
        id: "injection.override-instructions",
        reason: "it tells the agent to drop what it was told before",
        hint: HINT,
        prose: &[
            concat!(
                r"<start>(?:ignore|disregard|forget|discard|abandon|pay no attention to",
                r"|(?:do not|don't|never|stop|cease) (?:follow|obey|comply with|adhere to|following|obeying))\s+(?:about\s+)?",
                r"(?:(?:all|any|every|each|the|your|of|these|those|that|and|or|given|current|content|ethical|internal)[\s,]+)*",
                r"(?:your|prior|previous(?:ly)?|above|earlier|preceding|foregoing|former|past|original|initial|system|safety|developer)[\s,]+",
                r"(?:(?:all|any|the|your|of|and|or|given|prior|previous|above|earlier|original|initial|system|safety|security|content|developer|stated|core)[\s,]+)*",
                r"(?:instructions?|directions?|directives?|prompts?|rules?|guidelines?|commands?|constraints?|guardrails?|programming|training|restrictions?|polic(?:y|ies)|orders?|filters?)\b",
            ),
            concat!(
                r"<start>(?:override|overrule|bypass|disable|turn off|remove)\s+(?:all\s+)?(?:of\s+)?your\s+",
                r"(?:(?:own|system|safety|security|content|ethical|internal|previous|original)[\s,]+)*",
                r"(?:instructions?|prompts?|rules?|guidelines?|constraints?|guardrails?|programming|restrictions?|polic(?:y|ies)|filters?)\b",
            ),
            concat!(
                r"<start>(?:ignore|disregard|forget)\s+(?:all|any|every)\s+(?:of\s+)?(?:the\s+)?",
                r"(?:instructions?|rules|guidelines|restrictions|constraints|prompts)\s*",
                r"(?:$|[.!;\n]|and\b|(?:that\s+)?you\b|that\s+came|given\b|before\b|above\b|so far)",
            ),
            concat!(
                r"<start>(?:ignore|disregard|forget)\s+(?:everything|anything|all|whatever|what)\s+(?:that\s+)?",
                r"(?:you(?:'ve|\s+(?:were|have|had|know|learned))\b|(?:was\s+|is\s+|comes\s+|came\s+|written\s+|said\s+|stated\s+)*(?:above|before\s+this|prior\s+to\s+this)\b)",
            ),
            r"<start>your\s+new\s+(?:system\s+)?(?:instructions|prompt|rules|directives?)\s*(?:are|is|:|follow)",
            r"<start>(?:you\s+are|you're)\s+(?:no\s+longer|not)\s+(?:bound|restricted|limited|constrained|governed)\s+by\b",
            r"<start>you\s+no\s+longer\s+(?:have|need)\s+to\s+(?:follow|obey|comply|adhere)\b",
            concat!(
                r"<start>(?:你)?(?:忽略|无视|無視|忘记|忘記|忘掉|不要遵守|不要理会|不要理會|不再遵守|绕过|繞過|抛开|丢弃)(?:掉|了)?(?:你)?",
                r"(?:之前|以上|上面|前面|先前|此前|所有|全部|一切|任何|系统|系統|原来|原有|最初|收到|给你|你|的)+",
                r"(?:指令|指示|命令|规则|規則|提示词|提示詞|提示|说明|說明|设定|設定|约束|限制)",
            ),
            concat!(
                r"<start>(?:ignora|ignore|ignorad|olvida|olvide|olvidad|descarta|descarte|desobedece|no sigas|no obedezcas|haz caso omiso de|pasa por alto)\s+",
                r"(?:(?:todas?|todos|cualquier|las?|los|el|de|tus?|sus?|del)\s+)*(?:(?:anteriores|previas|previos|mismas)\s+)?",
                r"(?:instruccion(?:es)?|reglas|indicaciones|directrices|ordenes|normas|restricciones|prompt)\s+",
                r"(?:(?:que|te|se|del|de|la|lo)\s+)*(?:anterior(?:es)?|previ[ao]s?|sistema|dieron|dadas|recibidas|recibiste|originales|iniciales|arriba)\b",
            ),
            concat!(
                r"<start>(?:ignora|olvida|descarta|desobedece|no sigas)\s+(?:todas\s+|todos\s+)?tus\s+",
                r"(?:instrucciones|reglas|directrices|ordenes|restricciones)\b",
            ),
            concat!(
                r"<start>(?:ignoriere?n?|vergiss|vergesst|vergessen|missachte|umgehe|verwirf|missachten|befolge\s+nicht)\s+(?:sie\s+)?",
                r"(?:(?:alle|samtliche|die|der|den|jede)\s+)*",
                r"(?:deine|ihre|eure|vorherigen?|bisherigen?|vorigen?|vorangegangenen?|vorangehenden?|obigen?|fruheren?|ursprunglichen?|zuvor\s+gegebenen)\s+",
                r"(?:(?:bisherigen?|vorherigen?|ursprunglichen?|internen?)\s+)?",
                r"(?:anweisung(?:en)?|instruktion(?:en)?|regeln|vorgaben|befehle|richtlinien|systemanweisung(?:en)?|system-?prompts?|einschrankungen|prompts?)\b",
            ),
            concat!(
                r"<start>(?:تجاهل|انس|انسى|اهمل|تخط|لا تتبع|لا تلتزم ب|تجاوز)[وي]?\s+(?:عن\s+)?(?:(?:جميع|كل|كافة|اي)\s+)?",
                r"(?:(?:ال)?(?:تعليمات|اوامر|قواعد|توجيهات|ارشادات|قيود)(?:ك|كم)?)\s*",
                r"(?:السابقة|السابقه|اعلاه|السالفة|الاصلية|التي|النظام|المذكورة|الخاصة بك|$|[.،\n])",
            ),
            concat!(
                r"<start>(?:ignorez?|oublie[zs]?|ne (?:suis|suivez) pas|ne tiens pas compte d|ne tenez pas compte d)[e']?\s*",
                r"(?:(?:toutes?|tous|les?|des?|tes|vos|aux)\s+)*(?:instructions|consignes|regles|directives|ordres)\s+(?:precedentes?|anterieures?|ci-dessus|initiales|du systeme|d'origine)\b",
            ),
            concat!(
                r"<start>(?:ignore|ignora|esqueca|desconsidere|dimentica|trascura)\s+(?:(?:todas?|tutte|as|le|os|suas|tue)\s+)*",
                r"(?:instrucoes|istruzioni|regras|regole|diretrizes)\s+(?:anteriores|precedenti|acima|iniciais)\b",
            ),
            r"<start>(?:игнорируйт?е?|забудьт?е?|проигнорируйт?е?)\s+(?:(?:все|свои|любые)\s+)*(?:предыдущие|прошлые|прежние|вышеуказанные|системные)\s+(?:инструкции|указания|правила|команды)",
            r"(?:これまで|以前|上記|前)の(?:すべての|全ての)?(?:指示|命令|ルール|プロンプト)を(?:すべて|全て)?(?:無視|忘れ)(?:して(?:ください|、|。|$)|し、|ろ|て(?:ください|、|。|$))",
        ],
        joined: &[concat!(
            r"(?:ignore|disregard|forget|bypass|override)(?:all|any|the|your|of|previous|prior|above|earlier|preceding|system|initial|original)+",
            r"(?:instructions?|rules|prompts?|directions|guidelines|commands)",
        )],
        commands: &[],
    },
    Rule {
        gate: Gate::Injection,
        id: "injection.unrestricted-role",
        reason: "it gives the agent a role without rules",
        hint: HINT,
        prose: &[
            r"<start>(?:you\s+are|you're)\s+(?:now\s+)?(?:in\s+)?(?:dan|developer|jailbroken|jailbreak|god|sudo|unrestricted|unfiltered|uncensored)\b\s*(?:mode|ai|model|assistant|gpt|[,.!]|$|\n)",
            r"<start>(?:enter|activate|enable|switch\s+to)\s+(?:dan|jailbreak|god|unrestricted|unfiltered|uncensored)\s+mode\b",
            concat!(
                r"<start>(?:act|behave|pretend|roleplay|role-play|imagine)\b[^.\n]*\b(?:without|with\s+no|have\s+no|has\s+no|free\s+(?:of|from)|unbound\s+by)\s+",
                r"(?:(?:any|all|ethical|moral|content|safety|of|your)\s+)*(?:restrictions|filters|limitations|guidelines|guardrails|rules|censorship)\b",
            ),
            r"<start>(?:from\s+now\s+on|henceforth)[\s,]+(?:you\s+)?[^.\n]*\bwithout\s+(?:any\s+)?(?:restrictions|filters|guardrails|censorship|safety)\b",
        ],
        joined: &[],
        commands: &[],
    },
    Rule {
        gate: Gate::Injection,
        id: "injection.false-authority",
        reason: "it speaks as if it were the system's own message",
        hint: HINT,
        prose: &[concat!(
            r"(?:\A|\n)[\s>#\-\[<(]*(?:system|developer|admin|administrator|openai|anthropic)",
            r"(?:\s+(?:message|prompt|note|notice|override|instructions?|update|alert))?[\])>]?\s*:\s*",
            r"(?:you\s+(?:are|must|will|should|have)\b|ignore\b|disregard\b|from\s+now\s+on|override\b|new\s+instructions|all\s+previous)",
        )],
        joined: &[],
        commands: &[],
    },
    Rule {
        gate: Gate::Injection,
        id: "injection.reveal-prompt",
        reason: "it asks for the agent's own instructions",
        hint: HINT,
        prose: &[
            concat!(
                r"<start>(?:reveal|print|show|repeat|output|display|tell|give|leak|dump|write|copy|disclose|share|expose|recite|quote|paste)\s+",
                r"(?:(?:me|us|out|back|verbatim)\s+)*(?:(?:all|the|full|exact|entire|complete|whole|text|contents?|of)\s+)*your\s+",
                r"(?:(?:full|entire|exact|complete|whole|own|current|verbatim|secret)\s+)*",
                r"(?:system\s*prompts?|system\s+messages?|(?:initial|original|hidden|internal|system)\s+(?:instructions|prompts?)|developer\s+messages?)\b",
            ),
            r"<start>(?:repeat|print|output|copy)\s+(?:back\s+)?(?:all\s+)?(?:of\s+)?(?:the\s+)?(?:words|text|everything|sentences|lines)\s+above\b",
        ],
        joined: &[],
        commands: &[],
    },
    Rule {
        gate: Gate::Injection,
        id: "injection.chat-template",
        reason: "it holds marks by which a model tells who speaks",
        hint: "leave the marks out, or show them as code",
        prose: &[
            r"<\|\s*(?:im_start|start_header_id)\s*\|>\s*(?:system|user|assistant|tool|developer|function)\b",
            r"<\|\s*(?:im_end|eot_id|eom_id|endoftext|end_of_turn|end)\s*\|>\s*<\|",
            r"(?:\A|\n)\s*<\|\s*(?:system|assistant|developer|user)\s*\|>",
            r"<\|start\|>(?:system|assistant|developer|user)(?:<\||\b)",
            r"\[inst\]\s*<<sys>>",
            r"\[inst\]\s*(?:[^\s\[]+\s+){2,}[^\[]*\[/inst\]",
            r"<<sys>>\s*(?:[^\s<]+\s+){2,}[^<]*<</sys>>",
            r"\[/inst\]\s*(?:</s>)?\s*(?:<s>)?\s*\[inst\]",
            r"<start_of_turn>\s*(?:user|model|system)\s*\n",
            r"(?:\A|\n)###\s*instructions?:[^#]*\n###\s*response:",
        ],
        joined: &[],
        commands: &[],
    },
];
