//! Order engines compared with the closure strand by strand.
//!
//! Stronger than the judge, which sees an engine only through the races it leads to: every strand asks
//! about every earlier one. Graph engines answer no such questions; only the judge sees them.

use dagsan_core::order::closure::Closure;
use dagsan_core::order::{Isolation, Order};
use dagsan_core::{Bytes, Consumer, Error, Phase, Run, Step, Strand, StrandId, Stream};

use crate::{Program, run};

/// Two strands about which an engine is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misordered {
    /// The earlier strand.
    pub first: StrandId,
    /// The later strand.
    pub second: StrandId,
    /// What the engine says; the truth is the opposite.
    pub precedes: bool,
}

struct Compare<'a> {
    engine: &'a mut dyn Order,
    truth: Closure,
    /// The strands that may be asked about.
    strands: Vec<StrandId>,
    wrong: Vec<Misordered>,
}

impl Consumer for Compare<'_> {
    fn accesses(&mut self, strand: &Strand, _runs: &[Run]) -> Result<(), Error> {
        if strand.quiescent {
            return Ok(());
        }
        self.engine.now(strand);
        self.truth.now(strand);
        for &first in self.strands.iter().filter(|&&first| first != strand.id) {
            let precedes = self.engine.precedes(first);
            if precedes != self.truth.precedes(first) {
                self.wrong.push(Misordered { first, second: strand.id, precedes });
            }
        }
        if !self.strands.contains(&strand.id) {
            self.strands.push(strand.id);
        }
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        if step.phase == Phase::Quiesced {
            self.strands.clear();
        }
        self.truth.event(step)?;
        self.engine.event(step)
    }

    fn erase(&mut self, _bytes: Bytes) -> Result<(), Error> {
        Ok(())
    }
}

/// Runs `program` and asks `engine` about every pair of strands. Fails if the engine refuses the program.
pub fn misordered(
    program: &Program,
    engine: &mut dyn Order,
    isolation: Isolation,
) -> Result<Vec<Misordered>, Error> {
    let truth = Closure::new(isolation);
    let mut stream = Stream::new(Compare { engine, truth, strands: Vec::new(), wrong: Vec::new() });
    run(program, &mut stream)?;
    Ok(stream.into_consumer().wrong)
}
