//! A recorded run for benchmarks: steps and strands, ready to be fed to any engine again and again.
//!
//! The structure checks the events once, when the script is written, so that what is timed later is the
//! engine alone.

use std::hint::black_box;
use std::time::{Duration, Instant};

use dagsan_core::order::Order;
use dagsan_core::structure::Structure;
use dagsan_core::{
    Construct, Error, Event, Phase, PromiseId, ScopeId, Step, Strand, StrandId, TaskId, TaskKind,
};

/// Part of one of the script's lists.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of<T>(self, list: &[T]) -> &[T] {
        &list[self.start as usize..][..self.len as usize]
    }
}

fn append<T: Copy>(list: &mut Vec<T>, items: &[T]) -> Span {
    let start = list.len() as u32;
    list.extend_from_slice(items);
    Span { start, len: items.len() as u32 }
}

struct OwnedStep {
    event: Event,
    scope: ScopeId,
    opened: Option<ScopeId>,
    closed: Option<ScopeId>,
    drained: Span,
    joined: Span,
    cross: Span,
    implied: bool,
    depth_first: bool,
}

enum Item {
    Step(OwnedStep),
    /// A strand, and the earlier ones that a history would ask about.
    Strand {
        task: TaskId,
        asks: Span,
    },
}

/// See the module's documentation.
#[derive(Default)]
pub struct Script {
    items: Vec<Item>,
    scopes: Vec<ScopeId>,
    tasks: Vec<TaskId>,
    asks: Vec<StrandId>,
    constructs: Vec<Construct>,
    /// Task events.
    pub events: u64,
    /// Tasks.
    pub task_count: u32,
    /// Gets of promises and futures.
    pub gets: u64,
    /// Strands.
    pub strands: u32,
}

/// What an engine was asked in a replay.
#[derive(Default)]
pub struct Answers {
    /// How many questions.
    pub asked: u64,
    /// How many were answered with yes.
    pub yes: u64,
    /// The time the far ones took, with that of looking at the clock.
    pub time: Duration,
    /// The time of the blocks of strands without and with near questions.
    pub blocks: [Duration; 2],
}

/// Near questions are asked in every other block of so many strands: whatever else the machine does, it does to
/// both kinds of blocks.
const BLOCK: u32 = 64;

/// What a replay asks an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Nothing: the cost of the events.
    Nothing,
    /// What the program's own accesses would make a history ask.
    Near,
    /// Strands picked at random from all earlier ones, one in every `n` strands.
    Far(u32),
}

impl Script {
    /// Feeds the script to an engine.
    pub fn replay(&self, order: &mut dyn Order, asking: Asking) -> Result<Answers, Error> {
        let (mut strand, mut answers) = (0, Answers::default());
        let mut block_start = Instant::now();
        let mut random = 0x2545_f491_4f6c_dd1du64;
        for item in &self.items {
            match item {
                Item::Step(step) => order.event(&self.step(step))?,
                Item::Strand { task, asks } => {
                    order.now(&Strand {
                        id: StrandId(strand),
                        task: *task,
                        isolated: false,
                        locks: &[],
                        quiescent: false,
                        depth_first: true,
                    });
                    match asking {
                        Asking::Nothing => {}
                        Asking::Near => {
                            let block = strand / BLOCK % 2;
                            if strand % BLOCK == 0 {
                                let now = Instant::now();
                                answers.blocks[1 - block as usize] += now - block_start;
                                block_start = now;
                            }
                            for &a in asks.of(&self.asks).iter().filter(|_| block == 1) {
                                answers.asked += 1;
                                answers.yes += u64::from(order.precedes(a));
                            }
                        }
                        Asking::Far(every) => {
                            if strand > 0 && strand % every == 0 {
                                random ^= random << 13;
                                random ^= random >> 7;
                                random ^= random << 17;
                                let a = StrandId((random % u64::from(strand)) as u32);
                                let start = Instant::now();
                                let yes = black_box(order.precedes(a));
                                answers.time += start.elapsed();
                                answers.asked += 1;
                                answers.yes += u64::from(yes);
                            }
                        }
                    }
                    strand += 1;
                }
            }
        }
        answers.blocks[(strand / BLOCK % 2) as usize] += block_start.elapsed();
        Ok(answers)
    }

    fn step(&self, step: &OwnedStep) -> Step<'_> {
        Step {
            event: step.event,
            scope: step.scope,
            opened: step.opened,
            closed: step.closed,
            drained: step.drained.of(&self.scopes),
            joined: step.joined.of(&self.tasks),
            cross: step.cross.of(&self.tasks),
            outlived: None,
            implied: step.implied,
            phase: Phase::Parallel,
            open_scopes: &[],
            depth_first: step.depth_first,
        }
    }

    /// The constructs that the program uses.
    pub fn constructs(&self) -> &[Construct] {
        &self.constructs
    }
}

/// Writes a script.
pub struct Writer {
    structure: Structure,
    script: Script,
    promises: u32,
}

impl Writer {
    /// A program with one task of `kind` started and never joined, so that nothing is quiescent and the
    /// engines have to keep all.
    pub fn new(kind: TaskKind) -> Writer {
        let mut writer = Writer { structure: Structure::new(), script: Script::default(), promises: 0 };
        let background = writer.spawn(TaskId::MAIN, kind);
        writer.event(Event::TaskEnd { task: background });
        writer
    }

    /// An event.
    pub fn event(&mut self, event: Event) {
        let step = self.structure.apply(event).expect("shapes are well-formed programs");
        assert!(step.phase == Phase::Parallel, "a shape never quiesces");
        let script = &mut self.script;
        script.events += 1;
        script.gets += u64::from(matches!(event, Event::PromiseGet { .. } | Event::FutureGet { .. }));
        if let Some(construct) = event.construct()
            && !script.constructs.contains(&construct)
        {
            script.constructs.push(construct);
        }
        let owned = OwnedStep {
            event: step.event,
            scope: step.scope,
            opened: step.opened,
            closed: step.closed,
            drained: append(&mut script.scopes, step.drained),
            joined: append(&mut script.tasks, step.joined),
            cross: append(&mut script.tasks, step.cross),
            implied: step.implied,
            depth_first: step.depth_first,
        };
        script.items.push(Item::Step(owned));
    }

    /// Creates a task.
    pub fn spawn(&mut self, parent: TaskId, kind: TaskKind) -> TaskId {
        let child = TaskId(self.structure.task_count());
        self.event(Event::Spawn { parent, child, kind });
        child
    }

    /// Creates a promise.
    pub fn promise(&mut self) -> PromiseId {
        let promise = PromiseId(self.promises);
        self.promises += 1;
        self.event(Event::PromiseNew { task: TaskId::MAIN, promise });
        promise
    }

    /// A strand of `task` that touches what the strands `asks` touched.
    pub fn strand(&mut self, task: TaskId, asks: &[StrandId]) -> StrandId {
        let asks = append(&mut self.script.asks, asks);
        self.script.items.push(Item::Strand { task, asks });
        self.script.strands += 1;
        StrandId(self.script.strands - 1)
    }

    /// The script.
    pub fn finish(mut self) -> Script {
        self.script.task_count = self.structure.task_count();
        self.script
    }
}
