//! What is known of a task because it is a team's (`team`): its shadow in the order of threads, and whether it is a piece of work.

use super::{Shadow, Tasks};

impl Tasks {
    /// The running task in the order of threads.
    #[inline]
    pub fn shadow(&self) -> Shadow {
        self.running().shadow
    }

    /// The same of another one, which lives, or was the last to end.
    pub fn shadow_of(&self, slot: u32) -> Shadow {
        self.live[slot as usize].shadow
    }

    /// Is the task there a piece of work, as the shadow of which the thread's own task stands?
    pub fn is_piece(&self, slot: u32) -> bool {
        self.live[slot as usize].is_piece
    }

    /// It is from here on, or no longer.
    pub fn set_piece(&mut self, is_piece: bool) {
        self.live[self.current as usize].is_piece = is_piece;
    }

    /// The task there is this one in the order of threads.
    pub fn set_shadow(&mut self, slot: u32, shadow: Shadow) {
        self.live[slot as usize].shadow = shadow;
    }

    /// Are blocks that the running task allocates its thread's own?
    pub fn has_own_heap(&self) -> bool {
        self.running().own_heap
    }

    /// They are, or not, from here on; says what held before.
    pub fn own_heap(&mut self, own: bool) -> bool {
        std::mem::replace(&mut self.live[self.current as usize].own_heap, own)
    }

    /// The running task is what a thread of a team does itself.
    pub fn be_of_team(&mut self) {
        self.live[self.current as usize].of_team = true;
    }

    /// Is it?
    #[inline]
    pub fn is_of_team(&self) -> bool {
        self.running().of_team
    }
}
