//! Breadth-first search by levels: who is the first to reach a vertex, a compare-exchange per edge says.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

/// Edges of a vertex.
const EDGES: usize = 16;
const UNSEEN: u32 = u32::MAX;

struct Graph {
    edges: Vec<u32>,
}

impl Graph {
    fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.edges[vertex as usize * EDGES..][..EDGES]
    }
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let graph = Graph { edges: (0..size * EDGES).map(|_| (next() % size as u64) as u32).collect() };
    let (time, levels) = timed(|| {
        let levels: Vec<AtomicU32> = (0..size).map(|_| AtomicU32::new(UNSEEN)).collect();
        levels[0].store(0, Relaxed);
        let (mut level, mut frontier) = (0, vec![0]);
        while !frontier.is_empty() {
            level += 1;
            // Relaxed: the level's end orders it before the next level.
            let reaches =
                |to: &u32| levels[*to as usize].compare_exchange(UNSEEN, level, Relaxed, Relaxed).is_ok();
            frontier = frontier
                .par_iter()
                .flat_map_iter(|&vertex| graph.neighbours(vertex).iter().copied().filter(reaches))
                .collect();
        }
        levels
    });
    let mut expected = vec![UNSEEN; size];
    expected[0] = 0;
    let (mut level, mut frontier) = (0, vec![0]);
    while !frontier.is_empty() {
        level += 1;
        let mut reached = Vec::new();
        for &to in frontier.iter().flat_map(|&vertex| graph.neighbours(vertex)) {
            if expected[to as usize] == UNSEEN {
                expected[to as usize] = level;
                reached.push(to);
            }
        }
        frontier = reached;
    }
    checked(time, levels.into_iter().map(AtomicU32::into_inner).eq(expected))
}
