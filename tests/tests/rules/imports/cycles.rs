//! The cycles of a graph.

use std::collections::BTreeSet;

/// The strongly connected components of more than one node, by Tarjan's algorithm. `edges[node]` are the nodes it leads to.
pub fn cycles(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![None; edges.len()],
        low: vec![0; edges.len()],
        open: Vec::new(),
        visited: 0,
        cycles: Vec::new(),
    };
    for node in 0..edges.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.cycles
}

struct Search<'a> {
    edges: &'a [BTreeSet<usize>],
    /// When each node was visited.
    order: Vec<Option<usize>>,
    /// The earliest visited node that each reaches among the open ones.
    low: Vec<usize>,
    /// The visited nodes whose component is not complete.
    open: Vec<usize>,
    visited: usize,
    cycles: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        self.order[node] = Some(self.visited);
        self.low[node] = self.visited;
        self.visited += 1;
        self.open.push(node);
        for &next in &self.edges[node] {
            match self.order[next] {
                None => {
                    self.visit(next);
                    self.low[node] = self.low[node].min(self.low[next]);
                }
                Some(order) if self.open.contains(&next) => {
                    self.low[node] = self.low[node].min(order);
                }
                Some(_) => {}
            }
        }
        if self.order[node] == Some(self.low[node]) {
            let start = self.open.iter().position(|open| *open == node).expect("it is open");
            let component = self.open.split_off(start);
            if component.len() > 1 {
                self.cycles.push(component);
            }
        }
    }
}
