//! SF-Order's reachability structure, and a history beside it, used by several threads at a time: random programs of structured
//! futures, whose tasks 1, 2, 4 and 8 workers run with random delays. All answers are those of the closed graph, and the racy bytes are
//! the oracle's.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::{hint, thread};

use dagsan_core::graph::{Graph, GraphBuilder};
use dagsan_core::oracle::Oracle;
use dagsan_core::order::Isolation;
use dagsan_core::order::sf_order::{At, Ended, Handle, Here, Reachability, SharedHistory};
use dagsan_core::{Bytes, Consumer, Error, Event, Run, Step, Strand, Stream, TaskId, TaskKind};
use dagsan_fuzz::{Class, Size, generate, run};
use fastrand::Rng;

/// What each task does, and whom it joins by it.
#[derive(Default)]
struct Script(Vec<Vec<(Event, Vec<TaskId>)>>);

impl Consumer for Script {
    fn accesses(&mut self, _: &Strand, _: &[Run]) -> Result<(), Error> {
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let task = step.event.task().index();
        self.0.resize_with(self.0.len().max(task + 1), Vec::new);
        self.0[task].push((step.event, step.joined.to_vec()));
        Ok(())
    }

    fn erase(&mut self, _: Bytes) -> Result<(), Error> {
        Ok(())
    }
}

/// Who precedes whom, by the definition: a row of nodes for each node.
fn closed(graph: &Graph) -> Vec<Vec<bool>> {
    let mut reached_by = vec![vec![false; graph.nodes.len()]; graph.nodes.len()];
    let mut edges = graph.edges.clone();
    edges.sort_by_key(|edge| edge.to);
    for edge in edges {
        let (from, to) = (edge.from.index(), edge.to.index());
        let row = reached_by[from].clone();
        reached_by[to].iter_mut().zip(row).for_each(|(to, from)| *to |= from);
        reached_by[to][from] = true;
    }
    reached_by
}

/// A task that has begun: where it is, how many events it has done, and how many nodes it has been in.
struct Begun {
    task: usize,
    here: Here,
    done: usize,
    node: usize,
}

struct Parallel<'a> {
    script: &'a [Vec<(Event, Vec<TaskId>)>],
    graph: &'a Graph,
    /// The nodes of each task.
    nodes: Vec<Vec<usize>>,
    precedes: Vec<Vec<bool>>,
    order: Reachability,
    history: SharedHistory,
    ready: Mutex<Vec<Begun>>,
    ended: Vec<OnceLock<Ended>>,
    handles: Vec<Mutex<Option<Handle>>>,
    /// The strands that have begun.
    known: Mutex<Vec<(usize, At)>>,
    left: AtomicUsize,
    stopped: AtomicBool,
    asked: AtomicUsize,
}

impl<'a> Parallel<'a> {
    fn new(script: &'a [Vec<(Event, Vec<TaskId>)>], graph: &'a Graph) -> Parallel<'a> {
        let mut nodes = vec![Vec::new(); script.len()];
        for (number, node) in graph.nodes.iter().enumerate() {
            nodes[node.task.index()].push(number);
        }
        let order = Reachability::new();
        let main = Begun { task: 0, here: order.main(), done: 0, node: 0 };
        Parallel {
            script,
            graph,
            nodes,
            precedes: closed(graph),
            history: SharedHistory::new(),
            ready: Mutex::new(vec![main]),
            ended: script.iter().map(|_| OnceLock::new()).collect(),
            handles: script.iter().map(|_| Mutex::new(None)).collect(),
            known: Mutex::default(),
            left: AtomicUsize::new(script.len()),
            stopped: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            order,
        }
    }

    fn work(&self, mut random: Rng) {
        /// A worker that has found a wrong answer leaves its task undone: the others should not wait for it.
        struct StopAll<'a>(&'a AtomicBool);
        impl Drop for StopAll<'_> {
            fn drop(&mut self) {
                self.0.fetch_or(thread::panicking(), Ordering::Relaxed);
            }
        }
        let _stop = StopAll(&self.stopped);
        while self.left.load(Ordering::Relaxed) > 0 && !self.stopped.load(Ordering::Relaxed) {
            let begun = {
                let mut ready = self.ready.lock().unwrap();
                match ready.len() {
                    0 => None,
                    some => Some(ready.swap_remove(random.usize(0..some))),
                }
            };
            match begun {
                Some(begun) => self.go_on(begun, &mut random),
                None => thread::yield_now(),
            }
        }
    }

    /// Runs a task until it ends or has to wait.
    fn go_on(&self, mut begun: Begun, random: &mut Rng) {
        let events = &self.script[begun.task];
        while let Some((event, joined)) = events.get(begun.done) {
            if !joined.iter().all(|task| self.ended[task.index()].get().is_some()) {
                self.ready.lock().unwrap().push(begun);
                return;
            }
            self.strand(&begun, random);
            let here = &mut begun.here;
            match *event {
                Event::Spawn { child, kind, .. } => {
                    let child = child.index();
                    let start = if kind == TaskKind::Future {
                        let (start, handle) = self.order.create(here).unwrap();
                        *self.handles[child].lock().unwrap() = Some(handle);
                        start
                    } else {
                        self.order.fork(here).unwrap()
                    };
                    self.ready.lock().unwrap().push(Begun { task: child, here: start, done: 0, node: 0 });
                }
                Event::FrameBegin { .. } => here.frame_begin(),
                Event::FrameEnd { .. } => here.frame_end(),
                Event::Sync { .. } => {
                    here.sync(joined.iter().filter_map(|task| self.ended[task.index()].get()));
                }
                Event::FutureGet { future, .. } => {
                    let handle = self.handles[future.index()].lock().unwrap().take().unwrap();
                    self.order.get(here, handle, self.ended[future.index()].get().unwrap()).unwrap();
                }
                Event::TaskEnd { .. } => {}
                other => panic!("{other:?} is no event of this class"),
            }
            begun.done += 1;
            begun.node += 1;
        }
        if begun.node < self.nodes[begun.task].len() {
            // The main task may go on to the end of the program.
            self.strand(&begun, random);
        }
        self.ended[begun.task].set(begun.here.end()).unwrap();
        self.left.fetch_sub(1, Ordering::Relaxed);
    }

    /// A strand: asks about those that have begun, takes its time, asks again, and delivers its accesses.
    fn strand(&self, begun: &Begun, random: &mut Rng) {
        let node = self.nodes[begun.task][begun.node];
        let others: Vec<(usize, At)> = {
            let mut known = self.known.lock().unwrap();
            known.push((node, begun.here.strand()));
            (0..8).map(|_| known[random.usize(0..known.len())]).collect()
        };
        for _ in 0..2 {
            for &(other, at) in others.iter().filter(|(other, _)| *other != node) {
                let answer = self.order.precedes(at, &begun.here);
                assert_eq!(answer, self.precedes[node][other], "does {other} precede {node}?");
            }
            self.asked.fetch_add(others.len(), Ordering::Relaxed);
            match random.u32(0..20) {
                0 => thread::yield_now(),
                delay => (0..delay * 10).for_each(|_| hint::spin_loop()),
            }
        }
        let accesses = self.graph.nodes[node].accesses.iter().map(|access| access.run);
        self.history.deliver(&self.order, &begun.here, accesses);
    }
}

#[test]
fn any_worker_may_ask_while_others_insert() {
    let (mut asked, mut racy) = (0, 0);
    for seed in 0..100 {
        let mut random = Rng::with_seed(seed);
        let size = Size::pick(&mut random);
        let program = generate(Class::StructuredFutures, &mut random, size);
        let mut stream = Stream::new((Script::default(), GraphBuilder::new()));
        run(&program, &mut stream).unwrap();
        let (Script(script), graph) = stream.into_consumer();
        let graph = graph.into_graph();
        let expected = Oracle::new(&graph, Isolation::Ordered).racy_bytes();
        for workers in [1, 2, 4, 8] {
            let parallel = Parallel::new(&script, &graph);
            thread::scope(|threads| {
                for worker in 0..workers {
                    let parallel = &parallel;
                    threads.spawn(move || parallel.work(Rng::with_seed(seed * 8 + worker)));
                }
            });
            asked += parallel.asked.into_inner();
            if graph.erasures.is_empty() {
                assert_eq!(
                    parallel.history.racy_bytes(),
                    expected,
                    "program {seed}, {workers} workers:\n{program}"
                );
                racy += usize::from(!expected.is_empty());
            }
        }
    }
    assert!(asked > 30_000 && racy > 30, "too tame: {asked} questions, {racy} runs with races");
}
