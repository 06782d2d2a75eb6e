//! Which eliminations are made: all, unless `DAGSAN_ELIM` names some.

use std::env;

/// The variable that names them.
const VARIABLE: &str = "DAGSAN_ELIM";

/// The eliminations, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eliminations {
    /// `cover`: marks that others make superfluous.
    pub cover: bool,
    /// `merge`: one mark for neighbours.
    pub merge: bool,
    /// `sink`: ranges behind loops.
    pub sink: bool,
    /// `local`: no marks for variables that nobody else knows of.
    pub local: bool,
}

/// What is not the name of an elimination.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{VARIABLE}={0}: give some of cover, merge, sink and local, with commas between them, or all, or none"
)]
pub struct Unknown(String);

impl Eliminations {
    const NONE: Eliminations = Eliminations { cover: false, merge: false, sink: false, local: false };
    const ALL: Eliminations = Eliminations { cover: true, merge: true, sink: true, local: true };

    /// Those that the user wants.
    pub fn wanted() -> Result<Eliminations, Unknown> {
        env::var(VARIABLE).map_or(Ok(Eliminations::ALL), |list| Eliminations::parse(&list))
    }

    fn parse(list: &str) -> Result<Eliminations, Unknown> {
        let mut wanted = Eliminations::NONE;
        for name in list.split(',').filter(|name| !name.is_empty()) {
            match name {
                "all" => wanted = Eliminations::ALL,
                "none" => wanted = Eliminations::NONE,
                "cover" => wanted.cover = true,
                "merge" => wanted.merge = true,
                "sink" => wanted.sink = true,
                "local" => wanted.local = true,
                _ => return Err(Unknown(list.to_owned())),
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_wanted_by_name() {
        assert_eq!(Eliminations::parse("all"), Ok(Eliminations::ALL));
        assert_eq!(Eliminations::parse(""), Ok(Eliminations::NONE));
        assert_eq!(
            Eliminations::parse("sink,cover"),
            Ok(Eliminations { sink: true, cover: true, ..Eliminations::NONE })
        );
        assert!(Eliminations::parse("sinks").is_err());
    }
}
