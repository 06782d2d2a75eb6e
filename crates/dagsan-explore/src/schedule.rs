//! A schedule in words: which of the choices was taken, each time there was one; and the scheduler that takes them
//! again.

use std::fmt;
use std::str::FromStr;

use dagsan_lang::{Choice, Scheduler};

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

/// Takes the choices of a schedule, and after its end the first one each time.
#[derive(Debug, Clone)]
pub struct Replay {
    schedule: Schedule,
    taken: usize,
    /// How many choices there were where one was asked for that is not there.
    too_few: Option<usize>,
}

impl Replay {
    /// Replays `schedule`. A choice that is not there ends the run with [`dagsan_lang::End::Stopped`].
    pub fn new(schedule: Schedule) -> Replay {
        Replay { schedule, taken: 0, too_few: None }
    }

    /// What is wrong with the schedule, after the run.
    pub fn problem(&self) -> Option<String> {
        let (place, schedule) = (self.taken, &self.schedule);
        match self.too_few {
            Some(choices) => Some(format!(
                "schedule {schedule} is not one of this program: number {} of it is {}, and the choices there are 0 to {}",
                place + 1,
                schedule.0.get(place).copied().unwrap_or(0),
                choices - 1
            )),
            None if place < schedule.0.len() => {
                Some(format!("schedule {schedule} is not one of this program, which has {place} choices"))
            }
            None => None,
        }
    }
}

impl Scheduler for Replay {
    fn choose(&mut self, choices: &[Choice]) -> Option<usize> {
        let choice = self.schedule.0.get(self.taken).copied().unwrap_or(0) as usize;
        if choice >= choices.len() {
            self.too_few = Some(choices.len());
            return None;
        }
        self.taken += 1;
        Some(choice)
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
