//! The races that were found, with what may be gone at the end of the program: their memory, their tasks, and which of
//! several places in the code they were made from.

use std::collections::BTreeMap;

use dagsan_core::{Access, Location, Race, SiteId};
use dagsan_findings::{Memory, Task};

use crate::heap;
use crate::image::Image;
use crate::journal;
use crate::sites::Sites;
use crate::state::EXACT;
use crate::tasks::Tasks;

/// Where one side of a race is in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub site: SiteId,
    /// Is it perhaps the place of an access to other bytes of the line, since that of these bytes was forgotten, or never known?
    pub nearby: bool,
}

/// A race on bytes that were accessed from one place on each side.
#[derive(Debug)]
pub struct Refined {
    /// The race that it is part of, by its number in the detector.
    pub race: usize,
    pub location: Location,
    pub places: [Place; 2],
    pub memory: heap::Where,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Found {
    /// In the order of the detector.
    pub races: Vec<Refined>,
    /// The tasks to speak of.
    pub tasks: BTreeMap<u32, Task>,
    /// The call that started everything a task belongs to, of tasks that the main one has started: the number of its
    /// stack.
    pub calls: BTreeMap<u32, u32>,
    known: usize,
    /// How many of the neighbourhoods of races have been looked at.
    pub around: usize,
    /// For each of the detector's meetings, the call stack of the outermost scope.
    pub meetings: Vec<Option<u32>>,
}

impl Found {
    /// How many of the detector's races are known.
    pub fn known(&self) -> usize {
        self.known
    }

    /// Takes note of the races beyond those that are known. `call` is the call stack of the outermost scope.
    #[cold]
    pub fn more(
        &mut self,
        races: &[Race],
        sites: &mut Sites,
        tasks: &Tasks,
        image: &Image,
        call: Option<u32>,
    ) {
        for (number, race) in races.iter().enumerate().skip(self.known) {
            for (places, location) in parts(race, sites) {
                let memory = memory(location, tasks, image);
                self.races.push(Refined { race: number, location, places, memory });
            }
            for task in [race.first.task, race.second.task] {
                self.mention(task.0, tasks, call);
            }
        }
        self.known = races.len();
    }

    /// Takes note of a task that is spoken of.
    pub fn mention(&mut self, task: u32, tasks: &Tasks, call: Option<u32>) {
        let eldest = tasks.mention(task, &mut self.tasks, &mut self.calls);
        if let Some((eldest, call)) = eldest.zip(call) {
            self.calls.entry(eldest).or_insert(call);
        }
    }
}

/// Where the second access to the first byte of a race is in the code.
pub fn second_site(race: &Race, sites: &mut Sites) -> SiteId {
    let Location { line, mask } = race.location;
    place(&race.second, line, mask & mask.wrapping_neg(), sites).site
}

/// The bytes of a race, by the places they were accessed from.
fn parts(race: &Race, sites: &mut Sites) -> Vec<([Place; 2], Location)> {
    let Location { line, mask } = race.location;
    let accesses = [&race.first, &race.second];
    if !accesses.iter().any(|access| Sites::is_one_of_several(access.site)) {
        let places = accesses.map(|access| Place { site: access.site, nearby: is_of_line(access, sites) });
        return vec![(places, race.location)];
    }
    let mut parts: Vec<([Place; 2], Location)> = Vec::new();
    for byte in (0..64).map(|bit| 1 << bit).filter(|byte| mask & byte != 0) {
        let places = accesses.map(|access| place(access, line, byte, sites));
        match parts.iter_mut().find(|(other, _)| *other == places) {
            Some((_, location)) => location.mask |= byte,
            None => parts.push((places, Location { line, mask: byte })),
        }
    }
    parts
}

/// Is its place that of the first access to the line, which may have been another one?
fn is_of_line(access: &Access, sites: &Sites) -> bool {
    !EXACT.get() && !access.atomic && !sites.is_allocators(access.site)
}

fn place(access: &Access, line: u64, byte: u64, sites: &mut Sites) -> Place {
    if !Sites::is_one_of_several(access.site) {
        return Place { site: access.site, nearby: false };
    }
    match sites.journal.place(access.strand, access.kind, line, byte) {
        journal::Place::First => Place { site: Sites::alone(access.site), nearby: false },
        journal::Place::Later(origin) => Place { site: sites.number(origin, false), nearby: false },
        journal::Place::Forgotten => Place { site: access.site, nearby: true },
    }
}

fn memory(location: Location, tasks: &Tasks, image: &Image) -> heap::Where {
    let address = location.addresses().next().unwrap_or_default() as usize;
    if let Some(block) = heap::block_of(address) {
        return heap::Where::Block(block);
    }
    heap::Where::Known(match (tasks.of_stack(address), image.relative(address)) {
        (Some(task), _) => Memory::Stack { task: Some(task.0) },
        (None, Some(at)) => Memory::Static { at },
        (None, None) => Memory::Other,
    })
}
