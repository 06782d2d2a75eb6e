//! Words of commands that reports tell people to type. Names of files hold what they like, and a shell must take each for one word.

use std::borrow::Cow;

/// A name as it is typed: as it is, if no shell sees anything in it, else in quotes. One that begins with a dash is no option.
pub fn word(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_-./+:@%,=".contains(c);
    let path = match name.starts_with('-') {
        true => Cow::Owned(format!("./{name}")),
        false => Cow::Borrowed(name),
    };
    match !path.is_empty() && path.chars().all(plain) {
        true => path,
        // Inside of single quotes only they themselves mean something.
        false => Cow::Owned(format!("'{}'", path.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_word_to_a_shell() {
        for plain in ["corpus/a_1.task", "target/dagsan/findings/é日本.0.json", "a=b,c@d%e+f:g"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word("-x.task"), "./-x.task");
        assert_eq!(word(""), "''");
        assert_eq!(word("it's $(reboot) `x`;.task"), r"'it'\''s $(reboot) `x`;.task'");
        assert_eq!(word("~/a*"), "'~/a*'");
        assert_eq!(word("a b"), "'a b'");
    }

    #[test]
    fn a_shell_has_the_same_name() {
        for name in ["it's $(echo x) `x`; \\ \"y\" #!&|<>*?[a]{b,c}~ .task", "plain", "", "é 日本"] {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", word(name))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), name);
        }
    }
}
