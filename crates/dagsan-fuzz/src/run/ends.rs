//! How bodies and tasks end, and which spawns a sync or an end must wait for.

use dagsan_core::{Consumer, Error, Event, TaskId};

use super::{Kind, Runner, Wait, Went};

impl<C: Consumer> Runner<'_, '_, C> {
    pub(super) fn end_of_body(&mut self, task: TaskId, kind: Kind) -> Result<Went, Error> {
        let state = &self.tasks[task.index()];
        let depth = state.frames.len();
        let must_sync = |child: TaskId| kind != Kind::Task || !self.tasks[child.index()].may_outlive;
        let spawned_here = state.unsynced.iter().any(|&(child, at)| at >= depth && must_sync(child));
        let wait = match kind {
            Kind::Task | Kind::Call | Kind::Isolated if spawned_here => {
                if self.spawns_run(task) {
                    return Ok(Went::Blocked(Wait::Sync));
                }
                self.sync(task)?;
                return Ok(Went::On);
            }
            Kind::Finish(finish) => Some(finish),
            Kind::Task if task == TaskId::MAIN => Some(0),
            Kind::Task | Kind::Call | Kind::Isolated | Kind::Plain => None,
        };
        if let Some(finish) = wait.filter(|&finish| self.finishes[finish] > 0) {
            return Ok(Went::Blocked(Wait::Finish(finish)));
        }
        match kind {
            Kind::Task => {
                self.emit(Event::TaskEnd { task })?;
                self.note_end(task);
                return Ok(Went::Ended);
            }
            Kind::Call => self.emit(Event::FrameEnd { task })?,
            Kind::Finish(_) => {
                self.emit(Event::FinishEnd { task })?;
                self.tasks[task.index()].unsynced.retain(|&(_, at)| at < depth);
            }
            Kind::Isolated => {
                self.emit(Event::IsolatedEnd { task })?;
                self.isolated = None;
            }
            // What was spawned in the block was spawned around it: there is no block for the stream.
            Kind::Plain => {
                for (_, at) in &mut self.tasks[task.index()].unsynced {
                    *at = (*at).min(depth - 1);
                }
            }
        }
        self.tasks[task.index()].frames.pop();
        Ok(Went::On)
    }

    fn note_end(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.ended = true;
        state.frames.clear();
        if task != TaskId::MAIN {
            self.finishes[state.finish] -= 1;
        }
        if let Some(region) = state.region.and_then(|name| self.regions.get_mut(&name)) {
            region.ended.push_back(task);
        }
    }

    /// Joins the spawns of the innermost procedure instance, which have all ended.
    pub(super) fn sync(&mut self, task: TaskId) -> Result<(), Error> {
        self.emit(Event::Sync { task })?;
        let state = &mut self.tasks[task.index()];
        let procedure = state.frames.last().map_or(0, |frame| frame.procedure);
        state.unsynced.retain(|&(_, at)| at < procedure);
        Ok(())
    }

    /// Does a spawn of the task's innermost procedure instance still run?
    pub(super) fn spawns_run(&self, task: TaskId) -> bool {
        let state = &self.tasks[task.index()];
        let procedure = state.frames.last().map_or(0, |frame| frame.procedure);
        state.unsynced.iter().any(|&(child, at)| at >= procedure && !self.tasks[child.index()].ended)
    }

    pub(super) fn ended_future(&self, name: u32) -> Option<TaskId> {
        self.futures.get(&name).copied().filter(|future| self.tasks[future.index()].ended)
    }
}
