//! A schedule in words: which of the choices was taken, each time there was one.

use std::fmt;
use std::str::FromStr;

/// The choices of a run, in order. Written as numbers with points between: `0.2.1`. After the last
/// one, and if it is empty (written `-`), the first choice is taken each time.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schedule(pub Vec<u32>);

/// A text that is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a schedule: expected numbers with points between, as in 0.2.1")]
pub struct BadSchedule {
    /// The text.
    pub text: String,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        for (place, choice) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            write!(f, "{choice}")?;
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = BadSchedule;

    fn from_str(text: &str) -> Result<Schedule, BadSchedule> {
        if text == "-" {
            return Ok(Schedule::default());
        }
        let choices: Result<_, _> = text.split('.').map(str::parse).collect();
        choices.map(Schedule).map_err(|_| BadSchedule { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_can_be_written_and_read() {
        for schedule in [Schedule(vec![]), Schedule(vec![0]), Schedule(vec![3, 0, 12])] {
            assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
        assert!("".parse::<Schedule>().is_err() && "1..2".parse::<Schedule>().is_err());
    }
}
