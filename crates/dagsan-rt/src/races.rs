//! The races that were found, with what may be gone at the end of the program: their memory and their tasks.

use std::collections::BTreeMap;

use dagsan_core::Race;
use dagsan_findings::{Memory, Task};

use crate::heap;
use crate::image::Image;
use crate::tasks::Tasks;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Found {
    /// The memory of each race, in the order of the detector.
    pub memory: Vec<heap::Where>,
    /// The tasks to speak of.
    pub tasks: BTreeMap<u32, Task>,
}

impl Found {
    /// How many races are known.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Takes note of the races beyond those that are known.
    #[cold]
    pub fn more(&mut self, races: &[Race], tasks: &Tasks, image: &Image) {
        for race in &races[self.len()..] {
            let address = race.location.addresses().next().unwrap_or_default() as usize;
            let memory = match (heap::block_of(address), tasks.of_stack(address), image.relative(address)) {
                (Some(block), ..) => heap::Where::Block(block),
                (None, Some(task), _) => heap::Where::Known(Memory::Stack { task: Some(task.0) }),
                (None, None, Some(at)) => heap::Where::Known(Memory::Static { at }),
                (None, None, None) => heap::Where::Known(Memory::Other),
            };
            self.memory.push(memory);
            for task in [race.first.task, race.second.task] {
                tasks.mention(task.0, &mut self.tasks);
            }
        }
    }
}
