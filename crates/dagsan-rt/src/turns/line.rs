//! Who takes turns, and who is next: the state of each thread, without the waiting.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Release;
use std::time::{Duration, Instant};

use crate::holder::inside_flag;
use crate::state::this_thread;
use crate::system;
use crate::tasks::Handle;

/// A thread that takes turns, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat(u32);

impl Seat {
    pub(super) const NONE: Seat = Seat(u32::MAX);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    HasTurn,
    Ready,
    /// Waits for somebody to wake this address, perhaps not for ever.
    Waits {
        address: usize,
        since: u64,
        timed: bool,
    },
    /// Waits until a word has another value than this, or for a number of turns.
    Delayed {
        address: usize,
        bytes: usize,
        value: u64,
        since: u64,
    },
    /// Has nothing to do.
    Idle,
    Outside,
    Over,
}

pub(super) struct Place {
    pub(super) state: State,
    /// 1 if it is this thread's turn, and it does not know yet. It sleeps here.
    pub(super) word: &'static AtomicU32,
    /// Its thread pointer, once it runs.
    pub(super) thread: usize,
    /// Where it is written whether it is inside of the runtime.
    pub(super) inside: usize,
    /// Its number in the system.
    pub(super) id: i32,
    /// What it runs when it has the turn.
    pub(super) task: Handle,
    /// Will nobody ask for its end any more? Then another thread may have the seat.
    pub(super) forgotten: bool,
    /// What it waits for, if it does.
    pub(super) why: &'static str,
}

/// What a thread waits for, if nobody says more.
pub(super) const ANOTHER: &str = "another thread";

pub(super) struct Turns {
    pub(super) places: Vec<Place>,
    /// Seats of threads that have ended, and that nobody asks about.
    pub(super) empty: Vec<Seat>,
    /// Those that are ready or delayed, in their order.
    pub(super) line: VecDeque<Seat>,
    pub(super) holder: Seat,
    /// How often the turn has gone on.
    pub(super) moves: u64,
    /// Whoever had the turn at that move was seen asleep.
    pub(super) asleep_at: u64,
    /// Since when nobody has had the turn.
    pub(super) free_since: Option<Instant>,
}

/// How long the first in the line sleeps before it looks at what the others do.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

/// For how many turns of others a lock that another thread holds is not tried.
const DELAY: u64 = 256;

impl Turns {
    pub(super) const fn new() -> Turns {
        Turns {
            places: Vec::new(),
            empty: Vec::new(),
            line: VecDeque::new(),
            holder: Seat::NONE,
            moves: 0,
            asleep_at: u64::MAX,
            free_since: None,
        }
    }

    pub(super) fn add(&mut self, state: State, task: Handle) -> Seat {
        if let Some(seat) = self.empty.pop() {
            let place = &mut self.places[seat.index()];
            *place =
                Place { state, task, thread: 0, inside: 0, id: 0, forgotten: false, why: ANOTHER, ..*place };
            return seat;
        }
        let word = Box::leak(Box::new(AtomicU32::new(0)));
        self.places.push(Place {
            state,
            word,
            thread: 0,
            inside: 0,
            id: 0,
            task,
            forgotten: false,
            why: ANOTHER,
        });
        Seat(self.places.len() as u32 - 1)
    }

    /// If nobody needs the seat any more, another thread may have it.
    pub(super) fn leaves_seat(&mut self, seat: Seat) {
        let place = &self.places[seat.index()];
        if place.state == State::Over && place.forgotten {
            self.empty.push(seat);
        }
    }

    /// How long a thread sleeps before it looks at what the others do. Who is next does so often, and who waits for a lock.
    pub(super) fn patience(&self, seat: Seat) -> Duration {
        let is_delayed = matches!(self.places[seat.index()].state, State::Delayed { .. });
        if is_delayed || self.line.front() == Some(&seat) { PATIENCE } else { 25 * PATIENCE }
    }

    /// This thread is the one of the seat.
    pub(super) fn arrives(&mut self, seat: Seat) {
        let place = &mut self.places[seat.index()];
        (place.thread, place.id) = (this_thread(), system::thread_id());
        place.inside = inside_flag();
    }

    pub(super) fn first_waiting(&self, address: usize) -> Option<Seat> {
        let waits = |(number, place): (usize, &Place)| match place.state {
            State::Waits { address: other, since, .. } if other == address => {
                Some((since, Seat(number as u32)))
            }
            _ => None,
        };
        self.places.iter().enumerate().filter_map(waits).min_by_key(|(since, _)| *since).map(|(_, seat)| seat)
    }

    pub(super) fn is_ready(&mut self, seat: Seat) {
        self.places[seat.index()].state = State::Ready;
        self.line.push_back(seat);
    }

    /// If nobody has the turn, the next one in the line gets it who can go on.
    pub(super) fn go_on_if_free(&mut self) {
        if self.holder != Seat::NONE {
            return;
        }
        let can_go_on = |seat: &Seat| match self.places[seat.index()].state {
            // Whoever has the lock may wait for this one, and spin.
            State::Delayed { since, .. } if self.moves - since >= DELAY => true,
            State::Delayed { address, bytes, value, .. } => {
                // SAFETY: the thread that is delayed is about to access it.
                let now = unsafe { system::load(address, bytes) };
                now != Some(value)
            }
            _ => true,
        };
        // A lock that nobody will give back is tried in vain, as it would be without us.
        let first = || Some(0).filter(|_| !self.line.is_empty() && !self.somebody_may_come());
        match self.line.iter().position(can_go_on).or_else(first) {
            Some(at) => self.give(at),
            None => _ = self.free_since.get_or_insert_with(Instant::now),
        }
    }

    pub(super) fn give(&mut self, at: usize) {
        let Some(seat) = self.line.remove(at) else { return };
        self.holder = seat;
        self.moves += 1;
        self.free_since = None;
        let place = &mut self.places[seat.index()];
        place.state = State::HasTurn;
        // Release: see `await_turn`.
        place.word.store(1, Release);
        system::wake_one(place.word);
    }

    /// Will somebody get in line without being woken?
    pub(super) fn somebody_may_come(&self) -> bool {
        let may = |place: &Place| match place.state {
            State::Waits { timed, .. } => timed,
            State::Outside => true,
            _ => false,
        };
        self.places.iter().any(may)
    }

    /// The tasks of the threads that wait for each other.
    pub(super) fn blocked(&self) -> Vec<(Handle, &'static str)> {
        let waits = |place: &&Place| matches!(place.state, State::Waits { .. });
        self.places.iter().filter(waits).map(|place| (place.task, place.why)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// So many threads, ready in this order.
    fn ready(count: usize) -> (Turns, Vec<Seat>) {
        let mut turns = Turns::new();
        let seats: Vec<Seat> = (0..count).map(|_| turns.add(State::Outside, Handle::MAIN)).collect();
        seats.iter().for_each(|&seat| turns.is_ready(seat));
        (turns, seats)
    }

    /// Whoever has the turn does something else from here on.
    fn leaves(turns: &mut Turns, state: State) -> Seat {
        let seat = turns.holder;
        turns.places[seat.index()].state = state;
        turns.holder = Seat::NONE;
        if matches!(state, State::Ready | State::Delayed { .. }) {
            turns.line.push_back(seat);
        }
        turns.go_on_if_free();
        seat
    }

    #[test]
    fn who_was_ready_first_is_next() {
        let (mut turns, seats) = ready(3);
        turns.go_on_if_free();
        let order: Vec<Seat> = (0..5).map(|_| leaves(&mut turns, State::Ready)).collect();
        assert_eq!(order, [0, 1, 2, 0, 1].map(|number| seats[number]));
    }

    #[test]
    fn who_waits_is_woken_in_order_and_who_has_ended_gives_its_seat() {
        let (mut turns, seats) = ready(3);
        turns.go_on_if_free();
        for _ in 0..2 {
            let (since, timed) = (turns.moves, false);
            leaves(&mut turns, State::Waits { address: 64, since, timed });
        }
        assert_eq!((turns.holder, turns.first_waiting(64)), (seats[2], Some(seats[0])));
        assert_eq!(turns.first_waiting(65), None);
        turns.is_ready(seats[0]);
        turns.places[seats[2].index()].forgotten = true;
        leaves(&mut turns, State::Over);
        turns.leaves_seat(seats[2]);
        assert_eq!((turns.holder, turns.add(State::Ready, Handle::MAIN)), (seats[0], seats[2]));
    }

    #[test]
    fn a_lock_is_tried_when_it_is_free_or_nobody_else_can_go_on() {
        let word = AtomicU32::new(1);
        let (mut turns, seats) = ready(2);
        turns.go_on_if_free();
        let delayed = |since| State::Delayed { address: word.as_ptr().addr(), bytes: 4, value: 1, since };
        leaves(&mut turns, delayed(0));
        assert_eq!(leaves(&mut turns, State::Ready), seats[1]);
        assert_eq!(turns.holder, seats[1], "it is not free");
        word.store(0, Relaxed);
        leaves(&mut turns, State::Ready);
        assert_eq!(turns.holder, seats[0]);
        word.store(1, Relaxed);
        let since = turns.moves;
        leaves(&mut turns, delayed(since));
        leaves(&mut turns, State::Outside);
        assert_eq!(turns.holder, Seat::NONE, "somebody may come");
        turns.places[seats[1].index()].state = State::Over;
        turns.go_on_if_free();
        assert_eq!(turns.holder, seats[0], "nobody else is there");
    }
}
