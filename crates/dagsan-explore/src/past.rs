//! Which steps of the schedule come before the present of each task.

use dagsan_core::{Event, Phase, Step, TaskId};

/// A set of steps, by number: all below `floor`, and those in `words`.
///
/// ```text
///   0 ………………… floor ………………………………………►
///   ████████████ ·█··█····█···   (word number, 64 bits), sorted, empty words left out
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    floor: usize,
    words: Vec<(usize, u64)>,
}

impl Steps {
    /// All steps below `floor`.
    pub(crate) fn below(floor: usize) -> Steps {
        Steps { floor, words: Vec::new() }
    }

    pub(crate) fn contains(&self, step: usize) -> bool {
        let word = || self.words.binary_search_by_key(&(step / 64), |&(number, _)| number);
        step < self.floor || word().is_ok_and(|at| self.words[at].1 >> (step % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, step: usize) {
        if step < self.floor {
            return;
        }
        match self.words.binary_search_by_key(&(step / 64), |&(number, _)| number) {
            Ok(at) => self.words[at].1 |= 1 << (step % 64),
            Err(at) => self.words.insert(at, (step / 64, 1 << (step % 64))),
        }
    }

    pub(crate) fn join(&mut self, other: &Steps) {
        self.floor = self.floor.max(other.floor);
        let (mut a, mut b) = (self.words.iter().peekable(), other.words.iter().peekable());
        let mut words = Vec::with_capacity(self.words.len().max(other.words.len()));
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(&&x), Some(&&y)) if x.0 == y.0 => {
                    a.next();
                    b.next();
                    (x.0, x.1 | y.1)
                }
                (Some(&&x), Some(&&y)) if x.0 < y.0 => {
                    a.next();
                    x
                }
                (Some(&&x), None) => {
                    a.next();
                    x
                }
                (_, Some(&&y)) => {
                    b.next();
                    y
                }
                (None, None) => break,
            };
            if (next.0 + 1) * 64 > self.floor {
                words.push(next);
            }
        }
        self.words = words;
    }
}

/// Follows the task events; the steps themselves are entered by the observer.
#[derive(Debug)]
pub(crate) struct Pasts {
    tasks: Vec<Steps>,
    sets: Vec<Steps>,
}

impl Pasts {
    pub(crate) fn new() -> Pasts {
        Pasts { tasks: vec![Steps::default()], sets: Vec::new() }
    }

    pub(crate) fn of(&mut self, task: TaskId) -> &mut Steps {
        &mut self.tasks[task.index()]
    }

    /// An event after which `steps` steps have been made.
    pub(crate) fn event(&mut self, step: &Step<'_>, steps: usize) {
        let task = step.event.task();
        match step.event {
            Event::Spawn { parent, .. } => {
                let past = self.of(parent).clone();
                self.tasks.push(past);
            }
            Event::PromiseNew { .. } => self.sets.push(Steps::default()),
            Event::PromiseSet { promise, .. } => self.sets[promise.index()] = self.of(task).clone(),
            Event::PromiseGet { promise, .. } => {
                let set = std::mem::take(&mut self.sets[promise.index()]);
                self.of(task).join(&set);
                self.sets[promise.index()] = set;
            }
            _ => {}
        }
        for &joined in step.joined {
            let past = std::mem::take(self.of(joined));
            self.of(task).join(&past);
            *self.of(joined) = past;
        }
        if step.phase != Phase::Parallel {
            *self.of(TaskId::MAIN) = Steps::below(steps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(floor: usize, some: &[usize]) -> Steps {
        let mut steps = Steps::below(floor);
        some.iter().for_each(|&step| steps.insert(step));
        steps
    }

    #[test]
    fn sets_of_steps_are_joined() {
        let mut a = steps(0, &[3, 64, 200]);
        a.join(&steps(0, &[70, 500]));
        let members: Vec<usize> = (0..600).filter(|&step| a.contains(step)).collect();
        assert_eq!(members, [3, 64, 70, 200, 500]);
        a.join(&steps(100, &[130]));
        let members: Vec<usize> = (0..600).filter(|&step| a.contains(step)).collect();
        let expected: Vec<usize> = (0..100).chain([130, 200, 500]).collect();
        assert_eq!(members, expected);
        assert_eq!(a.words.len(), 4, "a word below the floor takes no room: {a:?}");
    }
}
