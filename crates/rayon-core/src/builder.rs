//! How a pool is asked for: the builder and its errors.
//!
//! Names and stack sizes of threads mean nothing, since there are none, but are passed on to programs that start threads
//! themselves.

use std::env;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

use crate::crew::{Crew, CustomSpawn, DefaultSpawn, ThreadBuilder, ThreadSpawn};
use crate::local;
use crate::pool::{Handlers, Pool, PoolRef, ThreadPool, max_num_threads};
use crate::unwind::Payload;

/// Asks for a pool.
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    num_threads: usize,
    use_current_thread: bool,
    breadth_first: bool,
    thread_name: Option<Box<dyn FnMut(usize) -> String>>,
    stack_size: Option<usize>,
    handlers: Handlers,
    spawn_handler: S,
}

impl Default for ThreadPoolBuilder {
    fn default() -> ThreadPoolBuilder {
        ThreadPoolBuilder {
            num_threads: 0,
            use_current_thread: false,
            breadth_first: false,
            thread_name: None,
            stack_size: None,
            handlers: Handlers::default(),
            spawn_handler: DefaultSpawn,
        }
    }
}

impl ThreadPoolBuilder {
    /// Asks for as many threads as the environment says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a pool for as long as `with_pool` runs, on threads that may borrow. Each calls `wrapper`, which is expected
    /// to call [`ThreadBuilder::run`].
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        thread::scope(|scope| {
            let wrapper = &wrapper;
            let start = |thread: ThreadBuilder| {
                thread.configured().spawn_scoped(scope, move || wrapper(thread)).map(drop)
            };
            let pool = self.spawn_handler(start).build()?;
            Ok(with_pool(&pool))
        })
    }
}

impl<S: ThreadSpawn> ThreadPoolBuilder<S> {
    /// Builds the pool.
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        Ok(ThreadPool { pool: self.into_pool()? })
    }

    /// Builds the global pool, which must not have been used.
    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        Pool::set_global(|| self.into_pool())
    }

    pub(crate) fn into_pool(mut self) -> Result<PoolRef, ThreadPoolBuildError> {
        if self.use_current_thread && local::worker().is_some() {
            return Err(ThreadPoolBuildError(ErrorKind::CurrentThreadInPool));
        }
        let threads = self.threads().min(max_num_threads());
        let handlers = Arc::new(self.handlers);
        let first = usize::from(self.use_current_thread);
        let mut crew = Crew::default();
        for index in first..threads {
            // The program may do more in there than to make a name.
            let name = self.thread_name.as_mut().map(|name| name(index));
            if S::STARTS {
                let thread = crew.hire(index, name, self.stack_size, &handlers);
                let started = self.spawn_handler.spawn(thread);
                started.map_err(|error| ThreadPoolBuildError(ErrorKind::Io(error)))?;
            }
        }
        let pool = Pool::start(first..threads, handlers, crew);
        if self.use_current_thread {
            local::stay(&pool);
        }
        Ok(pool)
    }
}

impl<S> ThreadPoolBuilder<S> {
    /// Threads are started by the program: `spawn` is called for each, and has [`ThreadBuilder::run`] called on it.
    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder {
            num_threads: self.num_threads,
            use_current_thread: self.use_current_thread,
            breadth_first: self.breadth_first,
            thread_name: self.thread_name,
            stack_size: self.stack_size,
            handlers: self.handlers,
            spawn_handler: CustomSpawn::new(spawn),
        }
    }

    fn threads(&self) -> usize {
        let asked = |variable| env::var(variable).ok().and_then(|value| value.parse::<usize>().ok());
        let default = || thread::available_parallelism().map_or(1, usize::from);
        match (self.num_threads, asked("RAYON_NUM_THREADS"), asked("RAYON_RS_NUM_CPUS")) {
            (threads @ 1.., _, _) | (0, Some(threads @ 1..), _) | (0, None, Some(threads @ 1..)) => threads,
            _ => default(),
        }
    }

    /// Names threads by their numbers.
    pub fn thread_name<F>(mut self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.thread_name = Some(Box::new(closure));
        self
    }

    /// Asks for so many threads; 0 means as many as the environment says.
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// The thread that builds the pool is one of its threads.
    pub fn use_current_thread(mut self) -> Self {
        self.use_current_thread = true;
        self
    }

    /// Hears of panics in jobs that nobody joins.
    pub fn panic_handler<H>(mut self, panic_handler: H) -> Self
    where
        H: Fn(Payload) + Send + Sync + 'static,
    {
        self.handlers.panic = Some(Box::new(panic_handler));
        self
    }

    /// The stack size of threads that the program starts.
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// Suggests another order of jobs.
    #[deprecated(note = "use `scope_fifo` and `spawn_fifo` for similar effect")]
    pub fn breadth_first(mut self) -> Self {
        self.breadth_first = true;
        self
    }

    /// Is called for every thread at its start.
    pub fn start_handler<H>(mut self, start_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.handlers.start = Some(Box::new(start_handler));
        self
    }

    /// Is called for every thread at its end.
    pub fn exit_handler<H>(mut self, exit_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.handlers.exit = Some(Box::new(exit_handler));
        self
    }
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Closure;
        impl fmt::Debug for Closure {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("<closure>")
            }
        }
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.num_threads)
            .field("use_current_thread", &self.use_current_thread)
            .field("get_thread_name", &self.thread_name.as_ref().map(|_| Closure))
            .field("panic_handler", &self.handlers.panic.as_ref().map(|_| Closure))
            .field("stack_size", &self.stack_size)
            .field("start_handler", &self.handlers.start.as_ref().map(|_| Closure))
            .field("exit_handler", &self.handlers.exit.as_ref().map(|_| Closure))
            .field("breadth_first", &self.breadth_first)
            .finish()
    }
}

/// Why there is no pool.
#[derive(Debug)]
pub struct ThreadPoolBuildError(ErrorKind);

#[derive(Debug)]
enum ErrorKind {
    GlobalExists,
    CurrentThreadInPool,
    Io(io::Error),
}

impl ThreadPoolBuildError {
    pub(crate) fn global_exists() -> ThreadPoolBuildError {
        ThreadPoolBuildError(ErrorKind::GlobalExists)
    }
}

// The messages are rayon's: programs print them, and compare them.
impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ErrorKind::GlobalExists => f.pad("The global thread pool has already been initialized."),
            ErrorKind::CurrentThreadInPool => {
                f.pad("The current thread is already part of another thread pool.")
            }
            ErrorKind::Io(error) => error.fmt(f),
        }
    }
}

impl Error for ThreadPoolBuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            ErrorKind::GlobalExists | ErrorKind::CurrentThreadInPool => None,
            ErrorKind::Io(error) => Some(error),
        }
    }
}

/// The builder of old.
#[deprecated(note = "Use `ThreadPoolBuilder`")]
#[derive(Default)]
pub struct Configuration {
    builder: ThreadPoolBuilder,
}

#[allow(deprecated)]
impl Configuration {
    /// Asks for as many threads as the environment says.
    pub fn new() -> Configuration {
        Configuration::default()
    }

    /// Builds the pool.
    pub fn build(self) -> Result<ThreadPool, Box<dyn Error + 'static>> {
        self.builder.build().map_err(Box::from)
    }

    fn map(self, change: impl FnOnce(ThreadPoolBuilder) -> ThreadPoolBuilder) -> Configuration {
        Configuration { builder: change(self.builder) }
    }

    /// As [`ThreadPoolBuilder::thread_name`].
    pub fn thread_name<F>(self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.map(|builder| builder.thread_name(closure))
    }

    /// As [`ThreadPoolBuilder::num_threads`].
    pub fn num_threads(self, num_threads: usize) -> Configuration {
        self.map(|builder| builder.num_threads(num_threads))
    }

    /// As [`ThreadPoolBuilder::panic_handler`].
    pub fn panic_handler<H>(self, panic_handler: H) -> Configuration
    where
        H: Fn(Payload) + Send + Sync + 'static,
    {
        self.map(|builder| builder.panic_handler(panic_handler))
    }

    /// As [`ThreadPoolBuilder::stack_size`].
    pub fn stack_size(self, stack_size: usize) -> Self {
        self.map(|builder| builder.stack_size(stack_size))
    }

    /// As [`ThreadPoolBuilder::breadth_first`].
    pub fn breadth_first(self) -> Self {
        self.map(ThreadPoolBuilder::breadth_first)
    }

    /// As [`ThreadPoolBuilder::start_handler`].
    pub fn start_handler<H>(self, start_handler: H) -> Configuration
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.map(|builder| builder.start_handler(start_handler))
    }

    /// As [`ThreadPoolBuilder::exit_handler`].
    pub fn exit_handler<H>(self, exit_handler: H) -> Configuration
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.map(|builder| builder.exit_handler(exit_handler))
    }
}

#[allow(deprecated)]
impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder.fmt(f)
    }
}

/// Builds the global pool.
#[deprecated(note = "use `ThreadPoolBuilder::build_global`")]
#[allow(deprecated)]
pub fn initialize(config: Configuration) -> Result<(), Box<dyn Error>> {
    config.builder.build_global().map_err(Box::from)
}
