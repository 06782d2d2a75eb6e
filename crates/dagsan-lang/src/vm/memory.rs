//! Shared memory: arrays, their names, and the checks of whole loop nests.

use dagsan_core::{AccessKind, Location};

use super::state::{Object, Promise, State};
use super::trace::CELL_BYTES;
use super::{Machine, Stop, fail};
use crate::compile::FIRST_CELL;
use crate::compile::op::{Reg, Summary};
use crate::hir::{Hir, MakerId};
use crate::schedule::CellName;
use crate::span::Span;

/// References have 31 bits for the base: they must not look negative.
const MAX_CELLS: u64 = 1 << 31;

/// A reference's first cell and its length.
#[inline]
pub(super) fn parts(reference: i64) -> (u64, u64) {
    (reference as u64 >> 32, reference as u64 & 0xffff_ffff)
}

impl Machine<'_, '_> {
    /// The cell of element `index`.
    #[inline]
    pub(super) fn cell(&self, reference: i64, index: i64) -> Result<usize, Stop> {
        let (base, len) = parts(reference);
        if (index as u64) < len {
            Ok((base + index as u64) as usize)
        } else {
            self.bad_index(reference, index)
        }
    }

    #[cold]
    fn bad_index(&self, reference: i64, index: i64) -> Result<usize, Stop> {
        if reference == 0 {
            return fail("this reference is null");
        }
        let (base, len) = parts(reference);
        let names = Names { hir: self.hir, state: &self.state };
        let name = names.array(base as u32);
        let name = name.map_or("the array".to_owned(), |name| format!("`{name}`"));
        let elements = if len == 1 { "element" } else { "elements" };
        fail(format!("index {index} is out of range: {name} has {len} {elements}"))
    }

    /// A new array of zeros.
    pub(super) fn new_array(&mut self, len: i64, maker: MakerId) -> Result<i64, Stop> {
        let Ok(wanted) = u64::try_from(len) else {
            return fail(format!("array length {len} is negative"));
        };
        let base = self.state.cells.len() as u64;
        // An empty array has a cell too, which makes its reference unlike any other.
        let cells = wanted.max(1);
        let after = base.saturating_add(cells);
        if after > MAX_CELLS || after > self.limits.words as u64 {
            return fail(format!("out of memory: no room for an array of {len} elements"));
        }
        if self.state.cells.try_reserve(cells as usize).is_err() {
            return fail(format!("out of memory: the system has no room for an array of {len} elements"));
        }
        self.state.cells.resize(after as usize, 0);
        self.state.objects.push(Object { base: base as u32, len: wanted as u32, maker });
        Ok((base << 32 | wanted) as i64)
    }

    pub(super) fn new_promises(&mut self, task: u32, len: i64, maker: MakerId) -> Result<i64, Stop> {
        let reference = self.new_array(len, maker)?;
        let (base, len) = parts(reference);
        for element in 0..len {
            let handle = self.new_promise(task, maker, Some(element as u32))?;
            self.state.cells[(base + element) as usize] = handle;
        }
        Ok(reference)
    }

    /// Collects the accesses of a loop nest. Steps are made positive and sorted; what then joins up
    /// becomes one range, the rest is enumerated:
    ///
    /// ```text
    ///   step 1, count 4      ████            one range of 4
    ///   step 4, count 3      ████████████    joins up: one range of 12
    ///   step 20, count 2     ████████████        ████████████       two ranges
    /// ```
    ///
    /// If some element does not exist, nothing is collected: the accesses themselves will fail.
    pub(super) fn summary(&mut self, summary: &Summary, stack: &[i64], base: usize) {
        if !self.trace.recording() {
            return;
        }
        let value = |reg: Reg| i128::from(stack[base + reg as usize]);
        let (first_cell, len) = parts(stack[base + summary.array as usize]);
        let mut start = value(summary.start);
        let mut dimensions = Vec::with_capacity(summary.dimensions.len());
        let mut reach = 0i128;
        for &(step, count) in &summary.dimensions {
            let (step, count) = (value(step), value(count));
            if count <= 0 {
                return;
            }
            // Both have 64 bits.
            let Some(length) = step.checked_mul(count - 1) else { return };
            start = start.saturating_add(length.min(0));
            reach = reach.saturating_add(length.abs());
            dimensions.push((step.abs(), count));
        }
        if start < 0 || start.saturating_add(reach) >= i128::from(len) {
            return;
        }
        dimensions.retain(|&(step, count)| step != 0 && count > 1);
        dimensions.sort_unstable();
        let mut width = 1;
        dimensions.retain(|&(step, count)| {
            let joins_up = step <= width;
            if joins_up {
                width += step * (count - 1);
            }
            !joins_up
        });
        let first = (first_cell as i128 + start) as u64;
        self.ranges(first, width as u64, &dimensions, summary);
    }

    fn ranges(&mut self, first: u64, width: u64, dimensions: &[(i128, i128)], summary: &Summary) {
        let Some((&(step, count), inner)) = dimensions.split_last() else {
            let write = self.hir.accesses[summary.access.index()].write;
            let kind = if write { AccessKind::Write } else { AccessKind::Read };
            self.trace.range(first, width, kind, summary.access);
            return;
        };
        for i in 0..count as u64 {
            self.ranges(first + i * step as u64, width, inner, summary);
        }
    }
}

/// Gives names to places in memory.
pub(crate) struct Names<'a> {
    pub(crate) hir: &'a Hir,
    pub(crate) state: &'a State,
}

impl Names<'_> {
    /// The name of the array whose first cell this is, if it has one.
    fn array(&self, base: u32) -> Option<&str> {
        let object = self.state.object_at(base)?;
        self.hir.makers[object.maker.index()].name.as_deref()
    }

    /// The names of all cells of a location, lowest first. `position` says where a span is, for arrays
    /// without a name.
    pub(crate) fn location(&self, location: Location, position: impl Fn(Span) -> String) -> Vec<String> {
        let mut cells: Vec<u64> = location.addresses().map(|address| address / CELL_BYTES).collect();
        cells.dedup();
        cells.into_iter().map(|cell| self.cell(cell as u32, &position)).collect()
    }

    fn cell(&self, cell: u32, position: impl Fn(Span) -> String) -> String {
        if let Some(object) = self.state.object_at(cell) {
            let maker = &self.hir.makers[object.maker.index()];
            let index = cell - object.base;
            return match &maker.name {
                Some(name) => format!("{name}[{index}]"),
                None => format!("new@{}[{index}]", position(maker.span)),
            };
        }
        let scalar = cell.checked_sub(FIRST_CELL).and_then(|shared| self.hir.shareds.get(shared as usize));
        scalar.map(|(name, _)| name.clone()).unwrap_or_else(|| format!("cell {cell}"))
    }

    /// The first cell of a location, in words for every schedule.
    pub(crate) fn stable(&self, location: Location) -> CellName {
        let address = location.addresses().next().unwrap_or(0);
        self.stable_cell((address / CELL_BYTES) as u32)
    }

    /// A cell, in words for every schedule.
    pub(crate) fn stable_cell(&self, cell: u32) -> CellName {
        match self.state.object_at(cell) {
            Some(object) => CellName { maker: Some(object.maker.0), index: cell - object.base },
            None => CellName { maker: None, index: cell },
        }
    }

    /// Where the array of a location was made by `new`.
    pub(crate) fn made_at(&self, location: Location) -> Option<Span> {
        let address = location.addresses().next()?;
        let object = self.state.object_at((address / CELL_BYTES) as u32)?;
        let maker = &self.hir.makers[object.maker.index()];
        maker.is_new.then_some(maker.span)
    }

    /// A promise in a message.
    pub(crate) fn promise(&self, promise: &Promise) -> String {
        let name = self.hir.makers[promise.maker.index()].name.as_deref().unwrap_or("?");
        match promise.element {
            None => format!("promise `{name}`"),
            Some(element) => format!("promise `{name}[{element}]`"),
        }
    }
}
