//! `dag`, the default: every construct, in any order of delivery.
//!
//! Let SP be the order of the series-parallel skeleton (async/finish, spawn/sync; see `sp`), and
//! call all other joins *non-tree*: get of a future, get of a promise, await, ewait, acquire, the order of
//! isolated sections, and syncs that something passes by ([`crate::structure`]). Each comes from a *set
//! event*: a set, a release, the end of a task, the end of an isolated section. Every strand has its *knowledge*:
//! the set events that reach it by a path whose first non-tree edge leaves them. Then
//!
//! ```text
//!   a precedes b   <=>   a SP-precedes b,
//!                        or some set event s known to b has a SP-before or at s
//! ```
//!
//! Proof: a path from `a` to `b` without non-tree edges is SP-precedence. Otherwise take its first
//! non-tree edge, which leaves a set event `s`: up to there the path is SP, and what follows makes
//! `s` known to `b`. The other direction is clear.
//!
//! A detached task has no place in the scopes of the skeleton. There it is a task that was started before the program
//! began, by nobody (the *yard*), and so parallel to everything; that it comes after its start is knowledge.
//!
//! Knowledge is inherited at a spawn, extended at a get, merged at a join (`knowledge`). In
//! programs without non-tree joins it is empty, and a query is one comparison of SP positions.
//!
//! Strand numbers grow along paths: a strand that was not yet delivered when a set event happened
//! does not precede it, which ends most searches early.

#[cfg(test)]
mod collected;
mod knowledge;
#[cfg(test)]
mod searched;

use rustc_hash::FxHashMap;

use super::sp::{LookedUp, Position, SeriesParallel};
use super::{Isolation, Order, Strands, Tasks, Visits};
use crate::error::Error;
use crate::event::{Event, TaskKind};
use crate::ids::{PromiseId, ScopeId, StrandId, SyncId, TaskId};
use crate::step::{Outlived, Phase, Step};
use crate::stream::{Dropped, Strand};
use crate::structure::ROOT;
use knowledge::{Knowledge, Known, Moment, SetEvent};

/// Where a task is, or was when it ended.
#[derive(Debug, Clone, Copy)]
struct Task {
    at: Position,
    known: Known,
    /// When that last became more.
    learnt: u32,
    /// For an ended task: strands from this number on came later.
    clock: u32,
    /// May others than the scope that it is in wait for its end?
    is_future: bool,
    /// Was it joined?
    joined: bool,
    /// For a future: the finish that will join it, whoever has joined it before, unless it is that of the program.
    scope: Option<ScopeId>,
    /// Is it a child in a sync block, which joins it though somebody has got it before?
    in_block: bool,
}

impl Task {
    fn new(at: Position, known: Known, is_future: bool, scope: Option<ScopeId>) -> Task {
        Task { at, known, learnt: 0, clock: 0, is_future, joined: false, scope, in_block: false }
    }

    fn set_event(&self, clock: u32) -> SetEvent {
        SetEvent { at: self.at, clock, known: self.known, learnt: self.learnt }
    }
}

/// A scope that is open.
#[derive(Debug, Clone)]
struct Scope {
    /// Where its closing leads.
    end: Position,
    /// What those of its tasks knew that were let go, if there is more to it than what is in the scope.
    known: Vec<Known>,
}

/// The strand that is asked about.
#[derive(Debug)]
struct Now {
    at: Position,
    looked_up: LookedUp,
    known: Known,
    /// Has all come in the serial depth-first order so far?
    depth_first: bool,
}

/// The yard and the main task, in a skeleton that has nothing but its start.
fn begin(sp: &SeriesParallel) -> (Position, Task) {
    match sp.fork(sp.start()) {
        Ok((yard, at)) => (yard, Task::new(at, Known::NOTHING, false, None)),
        Err(_) => unreachable!("there is room for the first positions"),
    }
}

/// All set events that may still be got, or followed otherwise.
fn events<'a>(
    sets: &'a mut FxHashMap<PromiseId, SetEvent>,
    isolated: &'a mut Option<SetEvent>,
    releases: &'a mut FxHashMap<SyncId, Vec<SetEvent>>,
) -> impl Iterator<Item = &'a mut SetEvent> {
    sets.values_mut().chain(isolated).chain(releases.values_mut().flatten())
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Dag {
    sp: SeriesParallel,
    knowledge: Knowledge,
    tasks: Tasks<Task>,
    /// Where the next detached task starts in the skeleton.
    yard: Position,
    /// By number; some are not open.
    scopes: Vec<Scope>,
    /// The promises that were set since the last quiescent point, and that somebody may still get.
    sets: FxHashMap<PromiseId, SetEvent>,
    isolation: Isolation,
    /// The end of the last isolated section, if sections are ordered.
    isolated: Option<SetEvent>,
    /// The kept releases of each object since the last quiescent point, those left out that precede others.
    releases: FxHashMap<SyncId, Vec<SetEvent>>,
    /// How many acquires have brought something new.
    acquired: u64,
    /// Has something else than an acquire brought knowledge since the last quiescent point?
    crosses: bool,
    /// Counts how often a task has learnt something.
    learnt: u32,
    /// How much knowledge the last collection has left.
    kept: usize,
    /// How many tasks, promises and releases were looked at then, and are still there.
    looked_at: usize,
    strands: Strands<Position>,
    now: Now,
    /// Room for the set events and the knowledge that a join brings.
    events: Vec<SetEvent>,
    merged: Vec<Known>,
}

impl Dag {
    /// At the start of a program, with isolated sections read as `isolation`.
    pub fn new(isolation: Isolation) -> Dag {
        let mut sp = SeriesParallel::new();
        let (yard, main) = begin(&sp);
        let looked_up = sp.look_up(main.at);
        Dag {
            knowledge: Knowledge::new(),
            tasks: Tasks::new(main),
            yard,
            scopes: Vec::new(),
            sets: FxHashMap::default(),
            isolation,
            isolated: None,
            releases: FxHashMap::default(),
            acquired: 0,
            crosses: false,
            learnt: 0,
            kept: 0,
            looked_at: 0,
            strands: Strands::new(),
            now: Now { at: main.at, looked_up, known: Known::NOTHING, depth_first: true },
            events: Vec::new(),
            merged: Vec::new(),
            sp,
        }
    }

    /// What happens at this point of `task` is a set event.
    fn set_event(&self, task: TaskId) -> SetEvent {
        self.tasks[task].set_event(self.strands.next())
    }

    fn release(&mut self, by: TaskId, sync: SyncId, keep: bool) {
        if !keep && let Some(kept) = self.releases.get_mut(&sync) {
            kept.clear();
        }
        self.keep(sync, self.set_event(by));
    }

    /// A task may release again and again what nobody acquires, so releases before others are dropped: the latest
    /// at once, and all of them whenever their number has doubled. What is left is parallel, or few.
    fn keep(&mut self, sync: SyncId, new: SetEvent) {
        let Dag { sp, knowledge, releases, .. } = self;
        let kept = releases.entry(sync).or_default();
        // What comes from another object may be older.
        let mut is_before = |old: &SetEvent| {
            (old.clock, old.learnt) <= (new.clock, new.learnt)
                && knowledge.precedes(sp, old, new.at, new.known)
        };
        while kept.last().is_some_and(&mut is_before) {
            kept.pop();
        }
        if kept.len() >= 8 && kept.len().is_power_of_two() {
            kept.retain(|old| !is_before(old));
        }
        kept.push(new);
    }

    /// Does a strand that is elsewhere in the skeleton precede now, by its place there alone?
    #[inline]
    fn precedes_in_skeleton(&mut self, at: Position) -> bool {
        let now = &self.now;
        if now.depth_first {
            self.sp.precedes_depth_first(at, &now.looked_up)
        } else {
            self.sp.precedes_looked_up(at, &now.looked_up)
        }
    }

    fn open(&mut self, task: TaskId, scope: ScopeId) -> Result<(), Error> {
        let end = self.sp.open(self.tasks[task].at)?;
        if self.scopes.len() <= scope.index() {
            self.scopes.resize(scope.index() + 1, Scope { end, known: Vec::new() });
        }
        let Scope { end: at, known } = &mut self.scopes[scope.index()];
        *at = end;
        known.clear();
        Ok(())
    }

    /// A task has come to know something, or has lost what it need not know.
    fn learn(&mut self, task: TaskId, known: Known) {
        let task = &mut self.tasks[task];
        if task.known != known {
            self.learnt += 1;
            (task.known, task.learnt) = (known, self.learnt);
        }
    }

    /// A task that no scope joins is parallel to all but what precedes its start.
    fn detach(&mut self, by: TaskId) -> Result<(), Error> {
        let (at, yard) = self.sp.fork(self.yard)?;
        self.yard = yard;
        self.events.push(self.set_event(by));
        self.crosses = true;
        let known = self.knowledge.extend(&self.sp, at, Known::NOTHING, &mut self.events, &mut self.merged);
        self.tasks.push(Task::new(at, known, false, None));
        Ok(())
    }

    fn join(&mut self, step: &Step<'_>) {
        let by = step.event.task();
        if let Some(scope) = step.closed {
            let Scope { end, known: left } = &mut self.scopes[scope.index()];
            self.tasks[by].at = *end;
            self.merged.append(left);
            // Tree joins bring the knowledge of the tasks that are joined.
            let own = self.tasks[by].known;
            let known = step.joined.iter().filter_map(|&task| Some(self.tasks.get(task)?.known));
            self.merged.extend(known.filter(|&known| known != own));
        }
        for &task in step.cross {
            let task = &self.tasks[task];
            self.events.push(task.set_event(task.clock));
        }
        match step.event {
            Event::PromiseGet { promise, .. } if !step.implied => {
                self.events.extend(self.sets.get(&promise));
            }
            Event::IsolatedBegin { .. } => self.events.extend(self.isolated),
            _ => {}
        }
        self.crosses |= !self.events.is_empty();
        if let Event::Acquire { sync, .. } = step.event
            && let Some(kept) = self.releases.get(&sync)
        {
            // A task that looks again and again learns something once.
            let Task { at, known, .. } = self.tasks[by];
            let (sp, knowledge) = (&self.sp, &mut self.knowledge);
            let new = kept.iter().filter(|release| !knowledge.precedes(sp, release, at, known));
            self.events.extend(new);
            self.acquired += u64::from(!self.events.is_empty());
        }
        for &task in step.joined {
            if let Some(task) = self.tasks.get_mut(task) {
                task.joined = true;
                let by_scope = !matches!(step.event, Event::FutureGet { .. });
                task.in_block &= !by_scope;
                if step.closed.is_some() {
                    task.scope = None;
                }
            }
        }
        if step.closed.is_some() || !self.events.is_empty() {
            let Task { at, known, .. } = self.tasks[by];
            let known = self.knowledge.extend(&self.sp, at, known, &mut self.events, &mut self.merged);
            self.learn(by, known);
        }
    }

    /// Children whose parent has ended are the finish's.
    fn leave(&mut self, outlived: &Outlived<'_>) {
        for &task in outlived.tasks {
            if let Some(task) = self.tasks.get_mut(task) {
                task.scope = Some(outlived.finish).filter(|&finish| finish != ROOT);
                task.in_block = false;
            }
        }
    }

    /// All that was precedes all that comes: only the main task and its open scopes stay.
    fn forget(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.sp.clear();
        self.knowledge.clear();
        let (yard, main) = begin(&self.sp);
        self.yard = yard;
        self.tasks.forget(main);
        for &scope in step.open_scopes {
            self.open(TaskId::MAIN, scope)?;
        }
        // A get of an older set is implied.
        self.sets.clear();
        self.isolated = None;
        self.releases.clear();
        self.crosses = false;
        self.strands.forget();
        self.now =
            Now { at: main.at, known: Known::NOTHING, looked_up: self.sp.look_up(main.at), ..self.now };
        (self.learnt, self.kept, self.looked_at) = (0, 0, 0);
        Ok(())
    }
}

impl Order for Dag {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let by = step.event.task();
        if let Some(scope) = step.opened {
            self.open(by, scope)?;
        }
        match step.event {
            Event::Spawn { kind: TaskKind::Detached, .. } => self.detach(by)?,
            Event::Spawn { kind, .. } => {
                let (child, rest) = self.sp.fork(self.tasks[by].at)?;
                let in_block = kind == TaskKind::Child;
                let is_future = matches!(kind, TaskKind::Future | TaskKind::Post(_));
                let scope = Some(step.scope).filter(|&scope| is_future && scope != ROOT);
                let task = Task::new(child, self.tasks[by].known, is_future || in_block, scope);
                self.tasks.push(Task { in_block, ..task });
                self.tasks[by].at = rest;
            }
            Event::TaskEnd { .. } => {
                self.tasks[by].clock = self.strands.next();
                if let Some(outlived) = &step.outlived {
                    self.leave(outlived);
                }
            }
            Event::PromiseNew { .. } => {}
            Event::PromiseSet { promise, .. } => _ = self.sets.insert(promise, self.set_event(by)),
            Event::IsolatedEnd { .. } => {
                if self.isolation == Isolation::Ordered {
                    self.isolated = Some(self.set_event(by));
                }
            }
            // As long as no strand was recorded, nothing that matters can precede a release.
            Event::Release { sync, keep, .. } => {
                if !self.strands.is_empty() {
                    self.release(by, sync, keep);
                }
            }
            Event::Pass { from, to, keep, .. } => {
                let passed = self.releases.get(&from).cloned().unwrap_or_default();
                if !keep {
                    self.releases.remove(&to);
                }
                passed.into_iter().for_each(|release| self.keep(to, release));
            }
            _ => self.join(step),
        }
        if step.phase == Phase::Quiesced {
            self.forget(step)?;
        }
        Ok(())
    }

    fn now(&mut self, strand: &Strand) {
        let Task { at, known, .. } = self.tasks[strand.task];
        self.strands.enter(strand.id, at);
        self.now = Now { at, known, depth_first: strand.depth_first, looked_up: self.sp.look_up(at) };
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        if self.surely_precedes(a) {
            return true;
        }
        let (known, at) = (self.now.known, self.strands[a]);
        known != Known::NOTHING && self.knowledge.reaches(&self.sp, a, at, known)
    }

    #[inline]
    fn surely_precedes(&mut self, a: StrandId) -> bool {
        let now = &self.now;
        let at = self.strands[a];
        // Both need nothing but the position's number, which may be all of it that is in the cache.
        let knows = now.known != Known::NOTHING;
        if at == now.at || (knows && self.knowledge.surely_reaches(&self.sp, a, at, now.known)) {
            return true;
        }
        self.precedes_in_skeleton(at)
    }

    /// Where there is other knowledge besides that of acquires, the two are not told apart.
    fn precedes_without_acquires(&mut self, a: StrandId) -> bool {
        let at = self.strands[a];
        at == self.now.at || self.precedes_in_skeleton(at) || (self.crosses && self.precedes(a))
    }

    fn dropped(&mut self, what: Dropped) {
        match what {
            Dropped::Future(task) => {
                if let Some(task) = self.tasks.get_mut(task) {
                    task.is_future = false;
                }
            }
            Dropped::Promise(promise) => _ = self.sets.remove(&promise),
        }
    }

    fn wants_collection(&self, recent: usize) -> bool {
        self.knowledge.len() > recent.max(2 * self.kept)
    }

    fn collect(&mut self, live: &[StrandId]) {
        self.strands.retain(live);
        let Dag { sp, knowledge, tasks, yard, scopes, sets, isolated, releases, strands, now, .. } = self;
        tasks.retain(|task| {
            let keep = !task.joined || task.is_future || task.in_block;
            if let (false, Some(scope)) = (keep, task.scope) {
                let Scope { end, known } = &mut scopes[scope.index()];
                if known.last() != Some(&task.known) && !knowledge.settled(sp, task.known, *end) {
                    known.push(task.known);
                }
            }
            keep
        });
        let released = releases.values().flatten().map(|release| release.at);
        let asked = strands.iter().copied().chain(released).collect();
        // What a task knows now is for later moments of its; what an event knows is for those who know the event.
        let later = |at| Moment { at, clock: u32::MAX, learnt: u32::MAX };
        knowledge.collect(sp, asked, |visit| {
            tasks.iter_mut().for_each(|task| visit(&mut task.known, later(task.at)));
            for Scope { end, known } in &mut *scopes {
                known.iter_mut().for_each(|known| visit(known, later(*end)));
            }
            for SetEvent { at, clock, known, learnt } in events(sets, isolated, releases) {
                visit(known, Moment { at: *at, clock: *clock, learnt: *learnt });
            }
            visit(&mut now.known, later(now.at));
        });
        for scope in &mut *scopes {
            scope.known.sort_unstable();
            scope.known.dedup();
        }
        sp.compact(|visit| {
            strands.iter_mut().for_each(&mut *visit);
            tasks.iter_mut().for_each(|task| visit(&mut task.at));
            scopes.iter_mut().for_each(|scope| visit(&mut scope.end));
            visit(yard);
            events(sets, isolated, releases).for_each(|event| visit(&mut event.at));
            knowledge.visit_positions(visit);
            visit(&mut now.at);
        });
        now.looked_up = sp.look_up(now.at);
        self.kept = self.knowledge.len();
        let released: usize = self.releases.values().map(Vec::len).sum();
        self.looked_at = self.tasks.len() + self.sets.len() + released;
    }

    fn weight(&self) -> usize {
        self.looked_at
    }

    fn memory(&self) -> usize {
        self.sp.memory()
            + self.knowledge.memory()
            + self.strands.memory()
            + self.tasks.memory()
            + self.sets.capacity() * size_of::<(PromiseId, SetEvent)>()
            + self.releases.capacity() * size_of::<(SyncId, Vec<SetEvent>)>()
            + self.releases.values().map(|kept| kept.capacity() * size_of::<SetEvent>()).sum::<usize>()
    }

    fn acquired(&self) -> Option<u64> {
        Some(self.acquired)
    }

    fn visits(&self) -> Option<Visits> {
        Some(self.knowledge.visits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::Structure;

    const SYNC: SyncId = SyncId(5);

    /// Two tasks in a finish, the first of which has touched memory.
    struct Case {
        structure: Structure,
        dag: Dag,
    }

    impl Case {
        fn new() -> Case {
            let mut case = Case { structure: Structure::new(), dag: Dag::new(Isolation::Ordered) };
            case.event(Event::FinishBegin { task: TaskId::MAIN });
            for child in [TaskId(1), TaskId(2)] {
                case.event(Event::Spawn { parent: TaskId::MAIN, child, kind: TaskKind::Async });
            }
            case.touch(0, TaskId(1));
            case
        }

        fn event(&mut self, event: Event) {
            self.dag.event(&self.structure.apply(event).unwrap()).unwrap();
        }

        fn touch(&mut self, id: u32, task: TaskId) {
            let (isolated, quiescent, depth_first) = (false, false, false);
            self.dag.now(&Strand { id: StrandId(id), task, isolated, locks: &[], quiescent, depth_first });
        }

        fn release(&mut self, task: u32, keep: bool) {
            self.event(Event::Release { task: TaskId(task), sync: SYNC, keep });
        }

        fn acquire(&mut self, task: u32) {
            self.event(Event::Acquire { task: TaskId(task), sync: SYNC });
        }

        fn kept(&self) -> usize {
            self.dag.releases[&SYNC].len()
        }
    }

    #[test]
    fn releases_that_nobody_acquires_do_not_add_up() {
        let mut case = Case::new();
        for _ in 0..1000 {
            case.release(1, true);
            case.release(2, true);
            assert!(case.kept() <= 16);
        }
        case.release(1, false);
        assert_eq!(case.kept(), 1);
    }

    #[test]
    fn a_chain_of_updates_keeps_the_last() {
        let mut case = Case::new();
        case.release(1, true);
        for task in [2, 1, 2, 2, 1] {
            case.acquire(task);
            case.release(task, true);
            assert_eq!(case.kept(), 1);
        }
    }

    #[test]
    fn who_looks_again_learns_nothing() {
        let mut case = Case::new();
        case.release(1, false);
        case.acquire(2);
        let known = case.dag.tasks[TaskId(2)].known;
        assert_ne!(known, Known::NOTHING);
        for _ in 0..100 {
            case.acquire(2);
        }
        assert_eq!(case.dag.tasks[TaskId(2)].known, known);
        case.touch(1, TaskId(1));
        case.release(1, true);
        case.acquire(2);
        assert_ne!(case.dag.tasks[TaskId(2)].known, known, "there is something new to learn");
    }

    #[test]
    fn releases_are_forgotten_at_a_quiescent_point() {
        let mut case = Case::new();
        case.release(1, true);
        for task in [1, 2] {
            case.event(Event::TaskEnd { task: TaskId(task) });
        }
        case.event(Event::FinishEnd { task: TaskId::MAIN });
        assert!(case.dag.releases.is_empty());
        case.release(0, true);
        assert!(case.dag.releases.is_empty(), "whatever comes follows this one anyway");
    }
}
