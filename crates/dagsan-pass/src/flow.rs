//! The flow of control: predecessors, an order, dominators, loops.
//!
//! Dominators by Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001). Loops are natural ones, from the
//! edges back to a block that dominates their source; what goes round in any other way belongs to no loop.

use crate::model::Function;

/// The flow of a function.
#[derive(Debug)]
pub struct Flow {
    pub predecessors: Vec<Vec<usize>>,
    /// Blocks that can be reached, each before its successors but for edges that go back.
    pub order: Vec<usize>,
    /// The place of each block in `order`.
    position: Vec<Option<usize>>,
    /// The closest block that every way to a block goes through; the entry has itself.
    dominator: Vec<usize>,
    /// Inner loops before outer ones.
    pub loops: Vec<Loop>,
    /// The innermost loop of each block.
    pub innermost: Vec<Option<usize>>,
}

/// A loop that is left and entered again by one block each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Where it is entered.
    pub header: usize,
    /// Those who go back to the header.
    pub latches: Vec<usize>,
    /// Its blocks: is it in?
    pub body: Vec<bool>,
    /// How it is left: from, to.
    pub exits: Vec<(usize, usize)>,
}

impl Flow {
    pub fn of(function: &Function) -> Flow {
        let count = function.blocks.len();
        let order = order(function);
        let mut position = vec![None; count];
        for (at, &block) in order.iter().enumerate() {
            position[block] = Some(at);
        }
        let mut predecessors = vec![Vec::new(); count];
        for &block in &order {
            for &to in &function.blocks[block].successors {
                predecessors[to].push(block);
            }
        }
        let dominator = dominators(&order, &position, &predecessors);
        let mut flow = Flow {
            predecessors,
            order,
            position,
            dominator,
            loops: Vec::new(),
            innermost: vec![None; count],
        };
        flow.find_loops(function);
        flow
    }

    /// Does every way to `block` go through `by`? Blocks that cannot be reached are dominated by none.
    pub fn dominates(&self, by: usize, block: usize) -> bool {
        let (Some(from), Some(_)) = (self.position[by], self.position[block]) else { return false };
        let mut at = block;
        while self.position[at].is_some_and(|here| here > from) {
            at = self.dominator[at];
        }
        at == by
    }

    fn find_loops(&mut self, function: &Function) {
        let count = function.blocks.len();
        let mut loops: Vec<Loop> = Vec::new();
        for &latch in &self.order {
            for &header in &function.blocks[latch].successors {
                if !self.dominates(header, latch) {
                    continue;
                }
                match loops.iter_mut().find(|known| known.header == header) {
                    Some(known) => known.latches.push(latch),
                    None => loops.push(Loop {
                        header,
                        latches: vec![latch],
                        body: vec![false; count],
                        exits: Vec::new(),
                    }),
                }
            }
        }
        for each in &mut loops {
            each.body[each.header] = true;
            let mut open = each.latches.clone();
            while let Some(block) = open.pop() {
                if !std::mem::replace(&mut each.body[block], true) {
                    open.extend(&self.predecessors[block]);
                }
            }
            for &from in self.order.iter().filter(|&&block| each.body[block]) {
                let out = function.blocks[from].successors.iter().filter(|&&to| !each.body[to]);
                each.exits.extend(out.map(|&to| (from, to)));
            }
        }
        loops.sort_by_key(|each| each.body.iter().filter(|&&is_in| is_in).count());
        for (number, each) in loops.iter().enumerate().rev() {
            for (block, _) in each.body.iter().enumerate().filter(|&(_, &is_in)| is_in) {
                self.innermost[block] = Some(number);
            }
        }
        self.loops = loops;
    }
}

/// Blocks in reverse postorder.
fn order(function: &Function) -> Vec<usize> {
    let mut order = Vec::with_capacity(function.blocks.len());
    if function.blocks.is_empty() {
        return order;
    }
    let mut seen = vec![false; function.blocks.len()];
    seen[0] = true;
    let mut open = vec![(0, 0)];
    while let Some((block, next)) = open.last_mut() {
        match function.blocks[*block].successors.get(*next) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    open.push((to, 0));
                }
            }
            None => {
                order.push(*block);
                open.pop();
            }
        }
    }
    order.reverse();
    order
}

fn dominators(order: &[usize], position: &[Option<usize>], predecessors: &[Vec<usize>]) -> Vec<usize> {
    let mut dominator: Vec<Option<usize>> = vec![None; predecessors.len()];
    let Some((&entry, rest)) = order.split_first() else { return Vec::new() };
    dominator[entry] = Some(entry);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in rest {
            let known = predecessors[block].iter().copied().filter(|&from| dominator[from].is_some());
            let common = known.reduce(|mut a, mut b| {
                while a != b {
                    let later = if position[a] > position[b] { &mut a } else { &mut b };
                    *later = dominator[*later].unwrap_or(entry);
                }
                a
            });
            if common.is_some() && dominator[block] != common {
                dominator[block] = common;
                changed = true;
            }
        }
    }
    dominator.into_iter().map(|known| known.unwrap_or(entry)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Block;

    fn flow(successors: &[&[usize]]) -> Flow {
        let block = |to: &&[usize]| Block { successors: to.to_vec(), ..Block::default() };
        Flow::of(&Function { blocks: successors.iter().map(block).collect(), ..Function::default() })
    }

    #[test]
    fn what_is_on_all_ways_dominates() {
        // 0 → 1 → {2, 3} → 4; 5 cannot be reached.
        let flow = flow(&[&[1], &[2, 3], &[4], &[4], &[], &[4]]);
        assert!(flow.dominates(0, 4) && flow.dominates(1, 4) && flow.dominates(4, 4));
        assert!(!flow.dominates(2, 4) && !flow.dominates(4, 2) && !flow.dominates(5, 4));
        assert!(flow.loops.is_empty());
    }

    #[test]
    fn loops_come_from_the_inside_with_their_exits() {
        // 0 → 1 { 2 { 2 } → 3 → 1 } → 4, and 2 leaves both by 5.
        let flow = flow(&[&[1], &[2, 4], &[2, 3, 5], &[1], &[], &[]]);
        let [inner, outer] = &flow.loops[..] else { panic!("two loops") };
        assert_eq!(
            (inner.header, &inner.latches[..], &inner.exits[..]),
            (2, &[2][..], &[(2, 3), (2, 5)][..])
        );
        assert_eq!((outer.header, &outer.latches[..], outer.exits.len()), (1, &[3][..], 2));
        assert_eq!(flow.innermost, [None, Some(1), Some(0), Some(1), None, None]);
    }

    #[test]
    fn what_is_entered_in_two_places_is_no_loop() {
        let flow = flow(&[&[1, 2], &[2], &[1, 3], &[]]);
        assert!(flow.loops.is_empty());
    }
}
