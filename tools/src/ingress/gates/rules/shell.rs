//! Text that has commands run which nobody should run for a stranger.

use super::{Gate, Rule};

/// A program that runs what is piped into it.
pub(super) const INTERPRETER: &str = r"(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+)?(?:/\S*/)?(?:(?:ba|z|da|k|a|fi)?sh|python[\d.]*|perl|ruby|node|php|pwsh|iex|invoke-expression)\b";

pub(super) const RULES: &[Rule] = &[
    Rule {
        gate: Gate::Shell,
        id: "shell.download-execute",
        reason: "it has something downloaded and run unseen",
        hint: "name what should be installed and from where; a person decides on running it",
        prose: &[
            concat!(
                r"<start>(?:download|fetch|get|grab|pull|curl|wget)\s+[^\n]*https?://\S+[^\n]*",
                r"(?:\b(?:and|then)\b|,)\s*(?:then\s+)?(?:run|execute|launch)\s+(?:it|this|that|them|the\s+(?:file|script|binary|installer|payload|program|result))\b",
            ),
            r"<start>(?:下载|下載)[^。\n]*https?://[^。\n]*(?:并|然后|後|后|再|,)\s*(?:运行|执行|執行|運行)",
            r"<start>(?:descarga|descargue|baja)\s+[^\n]*https?://[^\n]*\by\s+(?:ejecuta|ejecute|corre)(?:lo|la)?\b",
            r"<start>lade?\s+[^\n]*https?://[^\n]*\bund\s+(?:fuhre?|starte?)\s+(?:es|sie|ihn|das)\b",
        ],
        joined: &[],
        commands: &[
            r"(?:curl|wget|fetch|aria2c)\b[^\n|;]*\|\s*<shell>",
            r#"(?:ba|z|da|k)?sh\s+(?:-\w+\s+)?["']?(?:<\(|\$\(|`)\s*(?:curl|wget)\b[^\n]*?[)`]["']?"#,
            r#"(?:eval|source|\.|python[\d.]*\s+-c|perl\s+-e)\s+["']?(?:<\(|\$\(|`)\s*(?:curl|wget)\b[^\n]*?[)`]["']?"#,
            r"(?:curl|wget)\b[^\n]*(?:;|&&)\s*(?:sudo\s+)?(?:chmod\s+\S*[x7]\S*\s+\S+\s*(?:;|&&)\s*(?:sudo\s+)?)?(?:(?:ba|z|da|k)?sh\s+\S+|\./\S+|/tmp/\S+)",
            r"(?:iex|invoke-expression)\b[^\n]*(?:downloadstring|iwr|irm|invoke-webrequest|invoke-restmethod|net\.webclient)[^\n]*",
            r"(?:iwr|irm|invoke-webrequest|invoke-restmethod|\(?new-object\s+(?:system\.)?net\.webclient)[^\n]*\|\s*(?:iex|invoke-expression)\b",
            r"powershell(?:\.exe)?\b[^\n]*(?:downloadstring|downloadfile)[^\n]*",
            r"certutil\b[^\n]*-urlcache\b[^\n]*",
            r"(?:mshta|regsvr32\b[^\n]*|rundll32\b[^\n]*)\s*https?://\S+",
        ],
    },
    Rule {
        gate: Gate::Shell,
        id: "shell.destructive",
        reason: "it has data or a system destroyed",
        hint: "name the one file or folder that should go",
        prose: &[
            concat!(
                r"<start>(?:delete|remove|erase|wipe|destroy|purge|nuke)\s+(?:everything|(?:all|every)\s+(?:of\s+)?(?:the\s+|my\s+|your\s+|our\s+)?(?:\w+\s+){0,2}?(?:files?|data|folders?|directories|documents|backups|contents))\s+",
                r"(?:on|from|in|of)\s+(?:(?:the|this|my|your|our|entire|whole)\s+)*(?:computer|machine|server|host|hard\s*drive|disk|drive|file\s*system|home\s+(?:directory|folder)|root\s+directory|system|production\s+database)\b",
            ),
            r"<start>(?:wipe|erase|destroy|nuke)\s+(?:(?:the|this|my|your|our|entire|whole|complete|system|main|root)\s+)+(?:hard\s*drive|disk|drive|file\s*system|machine|server|computer|home\s+directory)\b",
            r"<start>(?:删除|刪除|清空|格式化|抹掉)(?:掉)?(?:这台|你的|服务器|电脑|系统|上|硬盘|的)*(?:所有|全部|一切|整个)(?:的)?(?:文件|檔案|数据|數據|资料|系统|硬盘|磁盘)",
            r"<start>losche\s+(?:alle|samtliche)\s+(?:dateien|daten)\s+(?:auf|von|vom)\s+(?:(?:dem|der|diesem|meinem|deinem)\s+)?(?:computer|rechner|server|festplatte|system)\b",
            r"<start>(?:borra|borre|elimina|elimine)\s+todos\s+los\s+(?:archivos|datos)\s+(?:del?|en)\s*(?:la\s+|el\s+|este\s+|tu\s+)?(?:ordenador|computadora|servidor|disco|sistema|maquina)\b",
            r"<start>احذف\s+(?:جميع|كل|كافة)\s+(?:الملفات|البيانات)",
        ],
        joined: &[],
        commands: &[
            concat!(
                r"rm\s+(?:-\S+\s+)*?-(?:\w*r\w*|-recursive|-no-preserve-root)(?:\s+-\S+)*\s+",
                r#"["']?(?:/\*?|~/?\*?|\$\{?home\}?/?\*?|\*|\.{1,2}/?\*?|/(?:etc|usr|bin|boot|lib(?:64)?|sbin|root|sys|proc|dev)(?:/\S*)?|/(?:home|var|opt|srv)/?\*?)["']?"#,
            ),
            r"mkfs(?:\.\w+)?\s+(?:-\S+\s+)*/dev/\S+",
            r"dd\s+[^\n]*of=/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk)\S*(?:\s+\w+=\S+)*",
            r"(?:cat|echo|printf|yes)\b[^\n]*>\s*/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk)\w*",
            r"(?:echo|cat|printf|true|:)\b[^\n>]*>\s*/etc/(?:passwd|shadow|sudoers|fstab)\b",
            r"\S*\s*\(\s*\)\s*\{\s*[^\s|{}]+\s*\|\s*[^\s|&{}]+\s*&\s*\}\s*;\s*\S+",
            r"ch(?:mod|own)\s+(?:-\S+\s+)*-\w*r\w*\s+\S+\s+/(?:\*|etc\S*|usr\S*|bin\S*)?",
            r"(?:wipefs|shred|blkdiscard|hdparm)\b[^\n]*/dev/\S+",
            r"find\s+(?:/|~|\$home)\s+[^\n]*(?:-delete|-exec\s+rm\b[^\n]*)",
            r"mv\s+(?:/|~|/\*|/etc|/home)\s+/dev/null",
            r"kill(?:all)?\s+-9\s+-1",
            r"(?:del|erase)\s+(?:/\w\s+)+\S*[a-z]:\\\S*",
            r"(?:rd|rmdir)\s+(?:/\w\s+)+[a-z]:\\\S*",
            r"format\s+[a-z]:(?:\s+/\w\S*)*",
            r"remove-item\b[^\n]*(?:\s[a-z]:\\\*?|\s~|\s\$home|\s/)\s[^\n]*-recurse[^\n]*",
            r"remove-item\b[^\n]*-recurse[^\n]*\s(?:[a-z]:\\\*?|~|/|\$home)",
            r"vssadmin\s+delete\s+shadows[^\n]*",
        ],
    },
    Rule {
        gate: Gate::Shell,
        id: "shell.decode-run",
        reason: "it has something run that is hidden in an encoding",
        hint: "show what should be run as it is",
        prose: &[
            concat!(
                r"<start>(?:base64[\s-]*)?(?:decode|decrypt|unscramble|deobfuscate|dekodiere|decodifica)\b[^.!?]*?\b(?:and|then|und|y)\s+(?:then\s+)?",
                r"(?:run|execute|evaluate|follow|obey|perform|carry\s+out|do|fuhre|ejecuta)(?:lo|la)?(?:\s+(?:it|them|that|this|what|whatever|es|das|the\s+(?:result|output|decoded|commands?|instructions?|payload|code|script))\b|\s+aus\b|\s*$)",
            ),
            r"<start>(?:解码|解碼|解密)[^。!?]*(?:并|然后|后|再|,)\s*(?:运行|执行|執行|運行)",
        ],
        joined: &[],
        commands: &[
            r"(?:(?:echo|printf|cat)\b[^\n]*\|\s*)?(?:base64\s+[^\n|]*?(?:-\w*d\w*|--decode)\b|openssl\s+[^\n|]*-d\b|xxd\s+[^\n|]*-\w*r\w*)[^\n|]*\|\s*(?:[^\n|]*\|\s*)*?<shell>",
            r#"(?:ba|z|da|k)?sh\s+(?:-\w+\s+|<<<\s*)?["']?(?:<\(|\$\(|`)[^\n]*(?:base64\s+[^\n|]*-\w*d|xxd\s+-\w*r|openssl\s+[^\n|]*-d)[^\n]*?[)`]["']?"#,
            r#"eval\s+["']?(?:\$\(|`)[^\n]*(?:base64|xxd)[^\n]*?[)`]["']?"#,
            r"(?:eval|exec|new function)\s*\([^\n]*(?:b64decode|atob|base64|fromhex|unhexlify|codecs\.decode|zlib\.decompress|fromcharcode)[^\n]*?\)",
            r#"powershell(?:\.exe)?\s[^\n]*-e(?:c|nc|ncodedcommand)?\s+["']?[a-z0-9+/=]{16,}["']?"#,
            r#"(?:python[\d.]*|perl|ruby|node|php)\s+-\w+\s+["'][^\n]*(?:b64decode|atob|base64|fromhex|unhexlify)[^\n]*["']"#,
        ],
    },
];
