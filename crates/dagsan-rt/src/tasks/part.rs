//! Tasks of a part of the program that runs ahead (`part`): they are numbered by themselves, until the part is told.

use dagsan_core::TaskId;

use super::{CameTo, Handle, Live, Scope, Stack, Tasks};

/// Where the part is in a place.
const PART: u32 = 20;

/// Set in the places of parts.
const IN_PART: u32 = 1 << 31;

/// There are so many parts that can be told apart. The last one is that of futures, which nobody resumes.
const PARTS: u32 = IN_PART >> PART;

/// What the place begins with.
fn part_of(place: u32) -> u32 {
    if place & IN_PART == 0 { 0 } else { place >> PART << PART }
}

/// The stack that a task was on before it went on on another.
#[derive(Debug, Clone, Copy)]
pub struct Stood {
    slot: u32,
    stack: Stack,
    base: usize,
    mark: usize,
    lowest: usize,
    /// So many places of parts were known here.
    moved: usize,
}

impl Tasks {
    /// Those of a part: its main task, on this stack, in the finish of this number.
    pub fn of_part(number: u32, stack: Stack, finish: u32) -> Tasks {
        let part = IN_PART | (number % (PARTS - 1)) << PART;
        let name = u64::from(number) << 32 | 1 << 63;
        let mut tasks = Tasks { part, last_finish: part, last_name: name, ..Tasks::new() };
        let main = &mut tasks.live[0];
        (main.stack, main.base) = (stack, stack.high);
        (main.mark, main.lowest, main.finish, main.name) = (stack.high, stack.high, finish, name);
        tasks
    }

    /// Is the handle of these tasks, and not of a part that was told, or of a future?
    pub(super) fn is_of_here(&self, handle: Handle) -> bool {
        let part = part_of(handle.place());
        part == self.part || part == u32::MAX >> PART << PART
    }

    /// The place of a task.
    #[inline]
    pub(super) fn slot_of(&self, handle: Handle) -> u32 {
        let place = handle.place();
        if part_of(place) == self.part {
            return place - self.part;
        }
        self.slot_of_moved(place)
    }

    #[cold]
    fn slot_of_moved(&self, place: u32) -> u32 {
        let moved = self.moved.iter().rev().find(|(from, _)| *from == place);
        // Whoever asks for one that has ended goes on as the running one.
        moved.map_or(self.current, |(_, to)| *to)
    }

    /// A part was told up to where it is now, and goes on here: `places` are those of its tasks that live, in the part and here. Its main task is the running
    /// one, whose stack this was.
    pub fn take_over(&mut self, part: &mut Tasks, places: &[(u32, u32)]) -> Stood {
        let (main, here) = (part.live[0], self.current);
        let before = &mut self.live[here as usize];
        let stood = Stood {
            slot: here,
            stack: before.stack,
            base: before.base,
            mark: before.mark,
            lowest: before.lowest,
            moved: self.moved.len(),
        };
        (before.stack, before.base, before.mark, before.lowest) =
            (main.stack, main.base, main.mark, main.lowest);
        before.touched |= main.touched;
        let to = |slot: u32| places.iter().find(|(from, _)| *from == slot).map_or(here, |(_, to)| *to);
        for &(from, to) in places {
            let Live { task, finish: _, .. } = self.live[to as usize];
            self.live[to as usize] = Live { task, ..part.live[from as usize] };
        }
        self.moved.extend(places.iter().map(|&(from, to)| (part.part | from, to)));
        self.moved.push((part.part, here));
        self.scopes.extend(part.scopes.drain(..).map(|scope| Scope { slot: to(scope.slot), ..scope }));
        self.came_to.extend(part.came_to.drain(..).map(|line| CameTo { slot: to(line.slot), ..line }));
        self.current = to(part.current);
        stood
    }

    /// The part has ended, and its main task goes on where it was before. It was the last one that was told and went on: what is known of its places is at the end. That of
    /// others with the same number stays, which parts have that began long before.
    pub fn stand_again(&mut self, stood: Stood) {
        let live = &mut self.live[stood.slot as usize];
        (live.stack, live.base, live.mark, live.lowest) = (stood.stack, stood.base, stood.mark, stood.lowest);
        self.moved.truncate(stood.moved);
    }

    /// While a part is told, whose tasks these are: what they have found in thread-local variables.
    pub fn lend_variables(&mut self, part: &Tasks) {
        self.lent.clone_from(&part.found);
    }

    /// The places and numbers of tasks that live, but for the main one.
    pub fn living(&self) -> impl Iterator<Item = (u32, TaskId)> {
        let all = self.live.iter().enumerate().skip(1).map(|(slot, live)| (slot as u32, live.task));
        all.filter(|(slot, _)| !self.free.contains(slot))
    }
}

#[cfg(test)]
mod tests {
    use dagsan_core::TaskKind;

    use super::*;

    const STACK: Stack = Stack { low: 0x1000, high: 0x2000 };

    /// A part with a task, both of which go on here, as tasks of these numbers.
    fn goes_on(here: &mut Tasks, number: u32, task: u32) -> (Handle, Stood) {
        let mut part = Tasks::of_part(number, STACK, 0);
        let handle = part.spawn(TaskId(1), TaskKind::Spawn, Stack::default());
        let main = here.slot();
        here.spawn(TaskId(task), TaskKind::Spawn, Stack::default());
        let place = here.slot();
        here.go_on(main);
        let places: Vec<(u32, u32)> = part.living().map(|(slot, _)| (slot, place)).collect();
        (handle, here.take_over(&mut part, &places))
    }

    #[test]
    fn places_of_a_part_are_known_until_it_ends_also_if_another_has_its_number() {
        let mut here = Tasks::new();
        let (outer, _) = goes_on(&mut here, 5, 10);
        let place = here.slot_of(outer);
        assert_eq!(here.number_of(place), TaskId(10));
        let (inner, stood) = goes_on(&mut here, 5 + PARTS - 1, 20);
        assert_eq!((outer.place(), here.number_of(here.slot_of(inner))), (inner.place(), TaskId(20)));
        here.stand_again(stood);
        here.go_on(0);
        assert_eq!(here.slot_of(outer), place);
    }
}
