//! Help with examples, completions for shells, and manual pages.

use std::fs;

use crate::directory::Directory;

fn printed(directory: &Directory, arguments: &str) -> String {
    let output = directory.run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_has_examples() {
    let directory = Directory::new("help", &[]);
    for arguments in ["--help", "check --help", "completions --help", "man --help"] {
        assert!(printed(&directory, arguments).contains("\nExample"), "{arguments}");
    }
    assert!(printed(&directory, "check --help").contains("--baseline <FILE>"));
}

#[test]
fn shells_can_complete_both_commands() {
    let directory = Directory::new("completions", &[]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        for (of, option) in [("dagsan", "baseline"), ("cargo-dagsan", "suppressions")] {
            let text = printed(&directory, &format!("completions {shell} {of}"));
            assert!(text.contains(of) && text.contains(option), "{shell} {of}: {text}");
        }
    }
    assert!(printed(&directory, "completions bash").contains("sarif"), "values are completed too");
    for shell in ["bash", "fish", "zsh"] {
        let text = printed(&directory, &format!("completions {shell} cargo-dagsan"));
        assert!(text.contains("nextest") && text.contains("doctor"), "{shell}: {text}");
    }
    assert_eq!(directory.run("completions csh").status.code(), Some(2));
}

#[test]
fn every_command_has_a_page() {
    let directory = Directory::new("man", &[]);
    printed(&directory, "man pages/man1");
    let mut pages: Vec<String> = fs::read_dir(directory.0.join("pages/man1"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let names = [
        "cargo-dagsan",
        "dagsan",
        "dagsan-c++",
        "dagsan-cc",
        "dagsan-check",
        "dagsan-completions",
        "dagsan-explain",
        "dagsan-man",
        "dagsan-report",
        "dagsan-run",
    ];
    let mut expected = names.map(|name| format!("{name}.1"));
    expected.sort();
    assert_eq!(pages, expected);
    let page = fs::read_to_string(directory.0.join("pages/man1/dagsan-check.1")).unwrap();
    assert!(page.starts_with(".ie") || page.contains(".TH dagsan-check 1"), "{page}");
    let page = fs::read_to_string(directory.0.join("pages/man1/cargo-dagsan.1")).unwrap();
    for part in ["nextest", "doctor", "cargo dagsan test sort", "66  a race", "DAGSAN_CACHE"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    fs::write(directory.0.join("file"), "").unwrap();
    assert_eq!(directory.run("man file").status.code(), Some(2), "a file is no directory");
}
