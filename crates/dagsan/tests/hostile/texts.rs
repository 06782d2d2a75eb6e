//! Names, programs, suppressions and baselines.

use super::NAME;

/// A program with a race.
pub const RACE: &str = "shared a[4];\n\nproc main() {\n    future f = { a[1] = 2; return 2; };\n    a[2] = a[1];\n    let u = get f;\n}\n";

/// Names that a file can have, but for its ending.
pub const NAMES: [&str; 36] = [
    "a\"b'c",
    "<\u{2f}script><img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "&lt;b&gt;&amp;",
    "--><!--]]>",
    "\u{1b}[31mred",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http:x\u{1b}\\link",
    "\u{1b}[2J\u{1b}[H",
    "\u{9b}31m",
    "\u{90}q\u{9c}",
    "back\u{8}\u{8}\u{8}\u{8}space",
    "\u{7f}delete",
    "carriage\rreturn",
    "new\nline",
    "\n::error::owned",
    "::error file=x,line=1::owned",
    "::set-output name=x::y",
    "%0A%0D%25::error::",
    "a,b:c=d",
    "tab\there",
    "vertical\u{b}tab",
    "form\u{c}feed",
    "\u{202e}gnp.ksat",
    "\u{2066}iso\u{2069}lated",
    "\u{200f}right\u{200e}left",
    "zero\u{200b}width\u{200d}",
    "\u{feff}mark",
    "\u{e0001}\u{e0041}tags",
    "line\u{2028}para\u{2029}graph",
    "\u{85}next",
    "`id`$(id)${HOME}",
    "{{7*7}}${7*7}",
    "__proto__",
    "--format",
    " ",
];

/// Programs, and what is none.
pub fn sources() -> Vec<(&'static str, Vec<u8>)> {
    let with = |comment: &str| format!("{RACE}// {}\n", comment.replace(['\n', '\r'], " ")).into_bytes();
    let inside =
        RACE.replace("a[2] = a[1];", &format!("a[2] = a[1]; // {}", NAME.replace(['\n', '\r'], " ")));
    let long =
        RACE.replace("a[2] = a[1];", &format!("{}a[2] = a[1];{}", " ".repeat(500_000), " ".repeat(500_000)));
    let chain = "let x = 0; ".repeat(10_000);
    vec![
        ("hostile comment", with(NAME)),
        ("hostile comment beside the access", inside.into_bytes()),
        ("a line of a megabyte", long.into_bytes()),
        ("two hundred thousand lines", format!("{}{RACE}", "\n".repeat(200_000)).into_bytes()),
        ("lines of DOS", RACE.replace('\n', "\r\n").into_bytes()),
        ("lines of a Macintosh", RACE.replace('\n', "\r").into_bytes()),
        ("tabs", RACE.replace("    ", "\t\t").into_bytes()),
        ("a mark of the order of bytes", format!("\u{feff}{RACE}").into_bytes()),
        ("nothing", Vec::new()),
        ("zeroes", vec![0; 4096]),
        ("no UTF-8", b"shared a; // \xff\xfe\nproc main() { a = 1; }\n".to_vec()),
        ("UTF-16", RACE.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("an unknown token", "proc main() { \u{1b}[31m }\n".into()),
        ("an unknown token of direction", "proc main() { \u{202e} }\n".into()),
        ("a text that is not closed", "proc main() { print \"\u{1b}[2J".into()),
        ("a name of a megabyte", format!("shared {0};\nproc main() {{ async {{ {0} = 1; }} {0} = 2; }}\n", "n".repeat(1 << 20)).into_bytes()),
        ("a number of a megabyte", format!("proc main() {{ print {}; }}\n", "9".repeat(1 << 20)).into_bytes()),
        ("a hundred thousand parentheses", format!("proc main() {{ print {}; }}\n", "(".repeat(100_000)).into_bytes()),
        ("a hundred thousand blocks", format!("proc main() {}\n", "{".repeat(100_000)).into_bytes()),
        ("ten thousand errors", format!("proc main() {{ {} }}\n", "y = 1; ".repeat(10_000)).into_bytes()),
        ("ten thousand locals", format!("proc main() {{ {chain} }}\n").into_bytes()),
        ("recursion without end", b"proc f() { f(); }\nproc main() { f(); }\n".to_vec()),
        ("tasks without end", b"shared x;\nproc f() { async { x = 1; f(); } }\nproc main() { f(); }\n".to_vec()),
        ("a loop without end", b"proc main() { while true { skip; } }\n".to_vec()),
        ("an array without end", b"proc main() { let a = new [4000000000000]; }\n".to_vec()),
        ("ten thousand races", b"shared a[10000];\nproc main() { forasync i in 0..10000 { a[i] = 1; } for i in 0..10000 { a[i] = 2; } }\n".to_vec()),
    ]
}

/// Files of suppressions.
pub fn suppressions() -> Vec<String> {
    let quoted = serde_json::to_string(NAME).unwrap();
    let entry = |more: &str| format!("[[suppress]]\nreason = \"r\"\n{more}\n");
    vec![
        format!("[[suppress]]\nreason = {quoted}\nvariable = \"a\"\n"),
        format!("[[suppress]]\nreason = {quoted}\nvariable = {quoted}\n"),
        entry(&format!("variable = \"{}b\"", "*a".repeat(30))),
        entry(&format!("variable = \"{}\"", "[".repeat(10_000))),
        entry("variable = \"**/**/**\"\nfile = \"../**\""),
        entry("variable = \"a\"\nexpires = 9999-12-31"),
        entry("variable = \"a\"\nexpires = 0000-00-00"),
        entry("variable = \"a\"\nexpires = 2001-01-01"),
        entry(&format!("{quoted} = 1")),
        entry("variable = 1"),
        "[[suppress]]\n".repeat(10_000),
        "[".repeat(100_000),
        format!("a = {}", "[".repeat(100_000)),
        "\u{1b}[31m\u{202e}".to_owned(),
        "\0".repeat(1000),
        format!("# {}\n{}", NAME.replace(['\n', '\r'], " "), entry("variable = \"a\"")),
        entry("variable = \"a\"").repeat(5_000),
    ]
}

/// Baselines.
pub fn baselines() -> Vec<String> {
    let quoted = serde_json::to_string(NAME).unwrap();
    let print = "0123456789abcdef0123456789abcdef";
    let many: Vec<String> = (0..50_000).map(|number| format!("\"{number:032x}\": {quoted}")).collect();
    vec![
        format!("{{\"version\": 1, \"races\": {{\"{print}\": {quoted}}}}}"),
        format!("{{\"version\": 1, \"races\": {{{quoted}: \"\"}}}}"),
        format!("{{\"version\": 1, \"races\": {{{}}}}}", many.join(",")),
        format!("{{\"version\": 1, \"races\": {{}}, {quoted}: 1}}"),
        "{\"version\": 4294967296, \"races\": {}}".to_owned(),
        "{\"version\": -1, \"races\": {}}".to_owned(),
        "{\"version\": 1, \"races\": []}".to_owned(),
        "[".repeat(100_000),
        "{\"version\": 1, \"races\": {\"\u{1b}".to_owned(),
        String::new(),
    ]
}
