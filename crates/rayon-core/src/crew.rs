//! Threads that the program starts for a pool: `spawn_handler`, `build_scoped`.
//!
//! Such threads are there for what the program sets up on them, thread-local variables most of all. So the first of them
//! runs what comes from outside of the pool, while the caller waits; the others have nothing to do. Calls that come from
//! inside of other calls stay on their thread, as everywhere.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::events;
use crate::pool::Handlers;

/// Something for a thread to do.
type Work = Box<dyn FnOnce() + Send>;

/// How a pool gets its threads. Not for users to implement.
pub trait ThreadSpawn: sealed::Sealed {
    /// Are there any?
    #[doc(hidden)]
    const STARTS: bool;

    /// Starts one.
    #[doc(hidden)]
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::DefaultSpawn {}
    impl<F> Sealed for super::CustomSpawn<F> {}
}

/// A pool without threads.
#[derive(Debug, Default)]
pub struct DefaultSpawn;

impl ThreadSpawn for DefaultSpawn {
    const STARTS: bool = false;

    fn spawn(&mut self, _: ThreadBuilder) -> io::Result<()> {
        Ok(())
    }
}

/// A pool whose threads the program starts.
#[derive(Debug)]
pub struct CustomSpawn<F>(F);

impl<F> CustomSpawn<F> {
    pub(crate) fn new(spawn: F) -> CustomSpawn<F> {
        CustomSpawn(spawn)
    }
}

impl<F: FnMut(ThreadBuilder) -> io::Result<()>> ThreadSpawn for CustomSpawn<F> {
    const STARTS: bool = true;

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}

/// A thread that the program is asked to start.
pub struct ThreadBuilder {
    index: usize,
    name: Option<String>,
    stack_size: Option<usize>,
    handlers: Arc<Handlers>,
    work: Receiver<Work>,
}

impl ThreadBuilder {
    /// Its number in the pool.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The name that the builder of the pool gave it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The stack size that the builder of the pool gave it.
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// The life of the thread; ends with the pool.
    pub fn run(self) {
        self.handlers.start(self.index);
        for work in self.work {
            work();
        }
        self.handlers.exit(self.index);
    }

    pub(crate) fn configured(&self) -> thread::Builder {
        let builder = thread::Builder::new();
        let builder = self.name.iter().fold(builder, |builder, name| builder.name(name.clone()));
        self.stack_size.into_iter().fold(builder, thread::Builder::stack_size)
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder")
            .field("index", &self.index)
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

/// What a pool has of its threads. They end when it is dropped.
#[derive(Default)]
pub(crate) struct Crew(Vec<Sender<Work>>);

impl Crew {
    /// One more thread.
    pub(crate) fn hire(
        &mut self,
        index: usize,
        name: Option<String>,
        stack_size: Option<usize>,
        handlers: &Arc<Handlers>,
    ) -> ThreadBuilder {
        let (send, work) = channel();
        self.0.push(send);
        ThreadBuilder { index, name, stack_size, handlers: Arc::clone(handlers), work }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Has the first thread do something, and waits for it. Does it here if there is none. It must not unwind.
    pub(crate) fn run(&self, body: &mut (dyn FnMut() + Send)) {
        // The channels have no hooks: what they order is told by promises.
        let before = events::promise_here();
        let (done, wait) = channel();
        let body: *mut (dyn FnMut() + Send) = body;
        let errand = Errand(body);
        // SAFETY: the lifetime alone changes. This function does not return before the closure is gone: run to its end,
        // or dropped by a thread that does not run. Either way `done` is dropped, which is what is waited for.
        let errand = unsafe { std::mem::transmute::<Errand<'_>, Errand<'static>>(errand) };
        let work: Work = Box::new(move || {
            events::promise_get(before);
            errand.run();
            // The caller waits.
            let _ = done.send(events::promise_here());
        });
        let refused = match self.0.first() {
            Some(first) => first.send(work).err().map(|error| error.0),
            None => Some(work),
        };
        if let Some(work) = refused {
            work();
        }
        if let Ok(after) = wait.recv() {
            events::promise_get(after);
            events::promise_drop(after);
        }
        events::promise_drop(before);
    }
}

/// Something to be done elsewhere, once.
struct Errand<'a>(*mut (dyn FnMut() + Send + 'a));

// SAFETY: what it points to is `Send`, and used by one thread at a time.
unsafe impl Send for Errand<'_> {}

impl Errand<'_> {
    fn run(self) {
        // SAFETY: `Crew::run` waits until this is over.
        unsafe { (*self.0)() }
    }
}
