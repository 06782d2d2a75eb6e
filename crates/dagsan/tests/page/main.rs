//! The page of `--report html=FILE`, in a real browser: opened, clicked, searched, without an error on its console.
//!
//! The browser is Debian's chromium, without a window. A script that is added to the page does what a reader would do, and leaves what went wrong in the
//! page, which the browser then prints. `cargo xtask test` installs the browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Looks for errors from the first element on.
const BEFORE: &str = r#"<head><script nonce="dagsan">
window.wrong = [];
addEventListener("error", (event) => wrong.push("error: " + event.message));
addEventListener("unhandledrejection", (event) => wrong.push("rejection: " + event.reason));
document.addEventListener("securitypolicyviolation", (event) => wrong.push("policy: " + event.violatedDirective));
window.pwned = () => wrong.push("a name was executed");
</script>"#;

/// What is checked in every page.
const COMMON: &str = r#"
const check = (what, good) => { if (!good) wrong.push(what); };
const all = (selector) => [...document.querySelectorAll(selector)];
const press = (key, at) => (at || document.activeElement || document.body).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const search = (text) => { const field = document.querySelector("input"); field.value = text; field.dispatchEvent(new Event("input")); };
check("no image, no frame", document.images.length === 0 && all("iframe, object, embed, link").length === 0);
"#;

/// A directory of its own for a test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{test}"));
        // Left by a run that failed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// Checks programs, and opens their page.
    fn open(&self, paths: &[&str], options: &[&str], script: &str) -> String {
        let report = self.0.join("page.html");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dagsan"));
        command.arg("check").args(paths).args(options).current_dir(&self.0);
        command.arg("--report").arg(format!("html={}", report.display()));
        let output = command.output().unwrap();
        assert!(report.exists(), "{}", String::from_utf8_lossy(&output.stderr));
        browse(&report, script);
        fs::read_to_string(&report).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Opens the page, lets the script work in it, and asserts that nothing went wrong.
fn browse(page: &Path, script: &str) {
    let text = fs::read_to_string(page).unwrap().replacen("<head>", BEFORE, 1);
    // A result, whatever comes: a script that breaks off leaves what it has.
    let after = format!(
        "<script nonce=\"dagsan\">try {{ {COMMON} {script} }} catch (error) {{ wrong.push(String(error)); }}\n\
         setTimeout(() => document.documentElement.setAttribute(\"data-result\", wrong.length ? encodeURIComponent(wrong.join(\", \")) : \"good\"), 50);\
         </script></body>"
    );
    let copy = page.with_extension("browsed.html");
    fs::write(&copy, text.replacen("</body>", &after, 1)).unwrap();
    let profile = page.with_extension("profile");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--virtual-time-budget=4000",
        ])
        .args(["--window-size=1200,1600", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", copy.display()))
        .output()
        .expect("chromium is missing: install Debian's package of this name (`cargo xtask test` does)");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{}", console.join("\n"));
    let result = dom.split_once("data-result=\"").and_then(|(_, rest)| rest.split_once('"'));
    assert_eq!(result.map(|(result, _)| result), Some("good"), "{log}");
}

const RACE: &str = "shared total[4];\nproc main() {\n    finish {\n        async { total[1] = 1; }\n        async { async { total[1] = 2; } }\n    }\n}\n";
const FREE: &str = "shared x;\nproc main() { finish { async { x = 1; } } print x; }\n";
const DEADLOCK: &str = "proc main() {\n    promise p;\n    async { get p; }\n}\n";

#[test]
fn a_reader_opens_clicks_and_searches() {
    let directory = Directory::new("reader");
    for (name, text) in [("race.task", RACE), ("free.task", FREE), ("deadlock.task", DEADLOCK)] {
        fs::write(directory.0.join(name), text).unwrap();
    }
    let script = r#"
        check("three programs, the race first", all(".program").length === 3 && all(".program > summary")[0].textContent === "racerace.task");
        check("counts", document.querySelector("[role=status]").textContent === "3 programs: 1 with races, 1 deadlock, 1 race-free");
        const finding = document.querySelector(".finding");
        check("the first race is open", finding.open);
        finding.querySelector("summary").click();
        check("a click closes it", !finding.open);
        finding.querySelector("summary").click();
        setTimeout(() => {
            check("both accesses are marked", finding.querySelectorAll("mark").length === 2 && [...finding.querySelectorAll("mark")].every((mark) => mark.textContent === "total[1]"));
            check("a tree of tasks", finding.querySelectorAll(".tree li").length === 6);
            check("advice", finding.querySelector(".help").textContent.includes("finish"));
            const svg = finding.querySelector("svg");
            check("the graph has both strands and the missing path", svg.querySelectorAll("g.access").length === 2 && svg.querySelectorAll("path.missing").length === 1 && svg.querySelectorAll("g.task").length === 4);
            const before = svg.getAttribute("viewBox");
            finding.querySelector(".tools button").click();
            const near = svg.getAttribute("viewBox");
            check("zoom", near !== before);
            press("ArrowLeft", svg);
            check("pan", svg.getAttribute("viewBox") !== near);
            press("0", svg);
            check("all of it again", svg.getAttribute("viewBox") === before);
            search("no such thing");
            check("nothing is found", all(".program:not([hidden])").length === 0 && document.querySelector("[role=status]").textContent.endsWith("0 with what is searched for"));
            search("WAITS for promise");
            check("the deadlock is found", all(".program:not([hidden]) > summary").map((one) => one.textContent).join() === "deadlockdeadlock.task");
            search("");
            check("all are there again", all(".program:not([hidden])").length === 3);
            press("/", document.body);
            check("a key searches", document.activeElement === document.querySelector("input"));
            press("Escape");
            press("j", document.body); press("j");
            check("keys go from finding to finding", document.activeElement === finding.querySelector("summary"));
            const clean = all(".program")[2];
            check("what is race-free is closed", !clean.open);
            const theme = getComputedStyle(document.body).backgroundColor;
            document.querySelector("header button").click();
            check("light and dark", getComputedStyle(document.body).backgroundColor !== theme);
        }, 10);
    "#;
    let page = directory.open(&["race.task", "free.task", "deadlock.task"], &["--stats"], script);
    assert!(!page.contains("https://"), "nothing of the network");
}

#[test]
fn what_is_marked_is_in_view() {
    let directory = Directory::new("marks");
    let far =
        RACE.replace("async { total[1] = 1; }", &format!("async {{ {}total[1] = 1; }}", " ".repeat(150)));
    fs::write(directory.0.join("race.task"), far).unwrap();
    let script = r#"
        setTimeout(() => all("mark").forEach((mark) => {
            const [box, lines] = [mark, mark.closest("pre")].map((one) => one.getBoundingClientRect());
            check("a mark is in view", box.left >= lines.left && box.right <= lines.right);
        }), 10);
    "#;
    directory.open(&["race.task"], &[], script);
}

#[test]
fn hostile_names_and_sources_do_nothing() {
    let directory = Directory::new("hostile");
    let name = "\"'><img src=x onerror=pwned()>\u{202e}\u{1b}[31m${pwned()}`.task";
    let source = RACE.replace(
        "finish {",
        "finish { // </script><script nonce=\"dagsan\">pwned()</script><!-- \u{202e}\u{2066}",
    );
    fs::write(directory.0.join(name), source).unwrap();
    let script = r#"
        check("the name is text", document.querySelector(".program > summary").textContent.includes("'><img src=x onerror=pwned()>\\u{202e}\\u{1b}[31m"));
        check("the comment is text", document.querySelector("pre").textContent.includes("<" + '/script><script nonce="dagsan">pwned()'));
        check("no control, no direction", !/[\u0000-\u0009\u000b-\u001f\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("main").textContent));
        check("our scripts only", document.scripts.length === 4);
    "#;
    directory.open(&[name], &[], script);
}

#[test]
fn ten_thousand_tasks_and_hundreds_of_programs_stay_usable() {
    let directory = Directory::new("large");
    let deep = "shared x;\nproc down(n) {\n    if n > 0 { async { down(n - 1); } } else { x = 1; }\n}\nproc main() {\n    finish { down(10000); x = 2; }\n}\n";
    fs::write(directory.0.join("deep.task"), deep).unwrap();
    let script = r#"
        const svg = document.querySelector("svg");
        check("the neighbourhood of the race, not everything", svg.querySelectorAll("g").length < 40 && document.body.textContent.includes("more tasks"));
        const frame = svg.getBoundingClientRect();
        const legible = (one) => { const box = one.getBoundingClientRect(); return box.height > 10 && box.top >= frame.top && box.bottom <= frame.bottom; };
        check("the accesses can be read", [...svg.querySelectorAll("g.access text")].every(legible));
        press("0", svg);
        const first = svg.querySelector("g.task").getBoundingClientRect();
        check("all of it is there", first.top >= frame.top && first.bottom <= frame.bottom);
    "#;
    let page = directory.open(&["deep.task"], &[], script);
    assert!(page.contains("10001") && page.len() < 100_000, "{} bytes", page.len());

    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
    let script = r#"
        check("all programs", all(".program").length > 400);
        search("isolated_hidden_race");
        check("one is found", all(".program:not([hidden])").length === 1);
        const card = document.querySelector(".program:not([hidden])");
        card.querySelector("summary").click();
        setTimeout(() => check("it is shown", card.open && card.querySelector(".finding")), 10);
    "#;
    let start = Instant::now();
    let page = directory.open(&[corpus], &[], script);
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert!(start.elapsed().as_secs() < 60);
}
