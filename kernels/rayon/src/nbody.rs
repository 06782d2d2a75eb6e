//! Bodies that attract each other, each pair in every step.

use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

#[derive(Clone, Copy, PartialEq)]
struct Body {
    position: [f64; 3],
    velocity: [f64; 3],
    mass: f64,
}

fn acceleration(body: &Body, bodies: &[Body]) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for other in bodies {
        let d: [f64; 3] = std::array::from_fn(|axis| other.position[axis] - body.position[axis]);
        let square = d.iter().map(|d| d * d).sum::<f64>() + 1e-6;
        let factor = other.mass / (square * square.sqrt());
        sum = std::array::from_fn(|axis| sum[axis] + d[axis] * factor);
    }
    sum
}

fn moved(body: &Body, bodies: &[Body]) -> Body {
    let by = acceleration(body, bodies);
    let velocity = std::array::from_fn(|axis| body.velocity[axis] + by[axis] * 1e-3);
    let position = std::array::from_fn(|axis| body.position[axis] + velocity[axis] * 1e-3);
    Body { position, velocity, mass: body.mass }
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let mut number = || (next() >> 11) as f64 / (1u64 << 53) as f64;
    let mut body = || Body { position: [number(), number(), number()], velocity: [0.0; 3], mass: number() };
    let start: Vec<Body> = (0..size).map(|_| body()).collect();
    let mut bodies = start.clone();
    let mut old = start.clone();
    let (time, ()) = timed(|| {
        for _ in 0..5 {
            old.copy_from_slice(&bodies);
            bodies.par_iter_mut().for_each(|body| *body = moved(body, &old));
        }
    });
    checked(time, moved(&old[7], &old) == bodies[7] && bodies != start)
}
