//! A picture of what is around races: for each, the ways from the latest strand before both accesses, and on to the earliest one after both.
//!
//! Strands that are on the ways of two races are drawn twice: a report knows the tasks of strands, not the strands themselves.

use dagsan_core::AccessKind;
use dagsan_core::graph::{EdgeKind, Neighbourhood};

use super::{Picture, PictureEdge, PictureNode};
use crate::clean::clean;
use crate::model::{Race, Report, Side};

/// So many races are drawn, each beside the one before.
const RACES: usize = 12;

impl Picture {
    /// What is around the races of a report; none if that was not kept.
    pub fn around(report: &Report) -> Option<Picture> {
        let mut picture =
            Picture { title: clean(report.name()).into_owned(), nodes: Vec::new(), edges: Vec::new() };
        let mut drawn: Vec<&Neighbourhood> = Vec::new();
        for race in &report.races {
            // Races of the same two strands have the same picture.
            if let Some(around) = race.around.as_ref().filter(|around| !drawn.contains(around))
                && drawn.len() < RACES
            {
                drawn.push(around);
                picture.race(report, race, around);
            }
        }
        (!drawn.is_empty()).then_some(picture)
    }

    fn race(&mut self, report: &Report, race: &Race, around: &Neighbourhood) {
        let start = self.strand(report, around.start.0);
        let mut ends = [start; 2];
        for (side, (access, down)) in [&race.first, &race.second].into_iter().zip(&around.down).enumerate() {
            for step in down {
                let next = self.strand(report, step.task.0);
                self.order(ends[side], next, step.kind);
                ends[side] = next;
            }
            self.nodes[ends[side] as usize].access(race, access);
        }
        let Some(up) = &around.up else { return };
        for (side, way) in up.iter().enumerate() {
            for step in way.iter().rev().skip(1).rev() {
                let next = self.strand(report, step.task.0);
                self.order(ends[side], next, step.kind);
                ends[side] = next;
            }
        }
        // Both ways end in one strand, which comes after all others.
        let Some(last) = up.iter().find_map(|way| way.last()) else { return };
        let last = self.strand(report, last.task.0);
        for (side, way) in up.iter().enumerate() {
            if let Some(step) = way.last() {
                self.order(ends[side], last, step.kind);
            }
        }
    }

    fn strand(&mut self, report: &Report, task: u32) -> u32 {
        let what = report.tasks.get(&task).map_or_else(String::new, |task| task.what.clone());
        self.nodes.push(PictureNode {
            task,
            what,
            strand: None,
            isolated: false,
            racing: false,
            lines: None,
            reads: Vec::new(),
            writes: Vec::new(),
        });
        self.nodes.len() as u32 - 1
    }

    fn order(&mut self, from: u32, to: u32, kind: EdgeKind) {
        self.edges.push(PictureEdge { from, to, kind });
    }
}

impl PictureNode {
    /// Makes it the strand of an access.
    fn access(&mut self, race: &Race, side: &Side) {
        self.racing = true;
        self.lines = (side.place.line > 0).then_some((side.place.line, side.place.line));
        let names = race.location_names().collect();
        match side.kind {
            AccessKind::Read => self.reads = names,
            AccessKind::Write => self.writes = names,
        }
    }
}

#[cfg(test)]
mod tests {
    use dagsan_core::TaskId;
    use dagsan_core::graph::PathStep;

    use super::*;
    use crate::fixture;
    use crate::graph::{dot, svg};

    fn step(kind: EdgeKind, task: u32) -> PathStep {
        PathStep { kind, task: TaskId(task), left_out: 0 }
    }

    #[test]
    fn the_two_strands_stand_between_what_comes_before_and_after_both() {
        let mut report = fixture::missing_get();
        assert!(Picture::around(&report).is_none());
        report.races[0].around = Some(Neighbourhood {
            start: TaskId(0),
            down: [vec![step(EdgeKind::Spawn, 2)], vec![step(EdgeKind::Continue, 0)]],
            up: Some([vec![step(EdgeKind::Join, 0)], vec![step(EdgeKind::Continue, 0)]]),
        });
        // The same strands again add nothing.
        report.races.push(report.races[0].clone());
        let picture = Picture::around(&report).unwrap();
        let edges: Vec<(u32, u32)> = picture.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        assert_eq!(edges, [(0, 1), (0, 2), (1, 3), (2, 3)]);
        let text = dot(&picture);
        assert!(
            text.contains("task 2 (future)\\nline 5\\nwrites a[1]") && text.contains("reads a[1]"),
            "{text}"
        );
        assert!(svg(&picture).unwrap().contains("writes a[1]"));
    }

    /// The common end had a smaller number than strands before it, and the picture a row less than none.
    #[test]
    fn edges_go_from_lower_to_higher_numbers() {
        let mut report = fixture::missing_get();
        let way = |steps: u32| (0..steps).map(|_| step(EdgeKind::Continue, 0)).collect::<Vec<_>>();
        for up in [[1, 3], [3, 1], [0, 2], [2, 0], [2, 2], [0, 0]] {
            report.races[0].around =
                Some(Neighbourhood { start: TaskId(0), down: [way(1), way(2)], up: Some(up.map(way)) });
            let picture = Picture::around(&report).unwrap();
            assert!(picture.edges.iter().all(|edge| edge.from < edge.to), "{up:?}: {:?}", picture.edges);
            assert!(svg(&picture).is_ok());
        }
    }
}
