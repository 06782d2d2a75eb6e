//! The shortest round trip, by trying all: the first cities in parallel, the others one after the other.

use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

/// Cities that are chosen in parallel.
const PARALLEL: usize = 4;

struct Map {
    size: usize,
    distances: Vec<u32>,
}

impl Map {
    fn distance(&self, from: usize, to: usize) -> u32 {
        self.distances[from * self.size + to]
    }

    /// The shortest way home from the last city of the path, through all that are not on it.
    fn shortest(&self, path: &mut Vec<usize>, so_far: u32, best: &mut u32) {
        let last = path[path.len() - 1];
        if so_far >= *best {
            return;
        }
        if path.len() == self.size {
            *best = (so_far + self.distance(last, 0)).min(*best);
            return;
        }
        for city in 1..self.size {
            if !path.contains(&city) {
                path.push(city);
                self.shortest(path, so_far + self.distance(last, city), best);
                path.pop();
            }
        }
    }

    fn search(&self, path: &[usize], so_far: u32) -> u32 {
        if path.len() == PARALLEL {
            let mut best = u32::MAX;
            self.shortest(&mut path.to_vec(), so_far, &mut best);
            return best;
        }
        let last = path[path.len() - 1];
        let open = (1..self.size).into_par_iter().filter(|city| !path.contains(city));
        let length = |city: usize| self.search(&[path, &[city]].concat(), so_far + self.distance(last, city));
        open.map(length).min().unwrap_or(u32::MAX)
    }
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let places: Vec<[i64; 2]> = (0..size).map(|_| [next() % 1000, next() % 1000].map(|n| n as i64)).collect();
    let between = |from: &[i64; 2], to: &[i64; 2]| (from[0].abs_diff(to[0]) + from[1].abs_diff(to[1])) as u32;
    let distances = places.iter().flat_map(|from| places.iter().map(move |to| between(from, to))).collect();
    let map = Map { size, distances };
    let (time, best) = timed(|| map.search(&[0], 0));
    let mut expected = u32::MAX;
    map.shortest(&mut vec![0], 0, &mut expected);
    checked(time, best == expected)
}
