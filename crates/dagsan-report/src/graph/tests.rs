//! Pictures of graphs made by hand and of large ones.

use std::collections::HashSet;

use dagsan_core::graph::{EdgeKind, GraphBuilder};
use dagsan_core::order::Isolation;
use dagsan_core::{
    AccessKind, AccessSet, Bytes, Event, Location, PromiseId, SiteId, StrandId, Stream, TaskId, TaskKind,
};
use dagsan_fuzz::{Class, Size, generate, run};
use expect_test::expect;

use super::contract::contract;
use super::{Names, Picture, dot, json, layout, svg};

struct Numbers;

impl Names for Numbers {
    fn task(&self, task: TaskId) -> String {
        if task == TaskId::MAIN { "main".to_owned() } else { "async<\"1\">".to_owned() }
    }
    fn locations(&self, location: Location) -> Vec<String> {
        location
            .ranges()
            .flat_map(|range| (range.start()..range.end()).step_by(8))
            .map(|at| format!("a[{}]", at / 8))
            .collect()
    }
    fn line(&self, site: SiteId) -> Option<usize> {
        Some(site.number() as usize)
    }
}

/// Main starts tasks, each of which writes its cell; then it reads the first of them, and joins all.
fn wide(tasks: u32) -> GraphBuilder {
    let mut stream = Stream::new(GraphBuilder::new());
    let main = TaskId::MAIN;
    let access = |stream: &mut Stream<GraphBuilder>, task, first: u64, cells: u64, kind, line| {
        let mut set = AccessSet::new();
        set.record(Bytes::new(first * 8, cells * 8).unwrap(), kind, SiteId::new(line).unwrap());
        stream.accesses(task, &set).unwrap();
    };
    stream.event(Event::FinishBegin { task: main }).unwrap();
    for number in 1..=tasks {
        let child = TaskId(number);
        stream.event(Event::Spawn { parent: main, child, kind: TaskKind::Async }).unwrap();
        access(&mut stream, child, u64::from(number), 1, AccessKind::Write, 7);
        stream.event(Event::TaskEnd { task: child }).unwrap();
    }
    access(&mut stream, main, 1, 6, AccessKind::Read, 9);
    stream.event(Event::FinishEnd { task: main }).unwrap();
    stream.into_consumer()
}

fn picture(tasks: u32) -> Picture {
    let racing = HashSet::from([StrandId(0), StrandId(tasks)]);
    Picture::new("a & \"b\"", wide(tasks).graph(), &Numbers, &racing, Isolation::Ordered)
}

#[test]
fn dot_escapes_names_and_marks_races() {
    expect![[r##"
        digraph "a & \"b\"" {
          node [shape=box, fontname="monospace", fontsize=10];
          n0 [label="0", shape=circle, fontsize=8, margin=0];
          n1 [label="0", shape=circle, fontsize=8, margin=0];
          n2 [label="task 1 (async<\"1\">)\nline 7\nwrites a[1]", color="#d02020", penwidth=2];
          n3 [label="task 0 (main)\nline 9\nreads a[1], a[2], a[3] and 3 more", color="#d02020", penwidth=2];
          n4 [label="0", shape=circle, fontsize=8, margin=0];
          n0 -> n1 [color="#444444", tooltip="continue", class="continue"];
          n1 -> n2 [color="#1f6fd0", tooltip="spawn", class="spawn"];
          n1 -> n3 [color="#444444", tooltip="continue", class="continue"];
          n3 -> n4 [color="#444444", tooltip="continue", class="continue"];
          n2 -> n4 [color="#2a8a3e", style=dashed, tooltip="join", class="join"];
        }
    "##]]
    .assert_eq(&dot(&picture(1)));
}

#[test]
fn json_has_everything() {
    expect![[r#"
        {
          "title": "a & \"b\"",
          "nodes": [
            {
              "id": 0,
              "task": 0,
              "kind": "main",
              "strand": null,
              "lines": null,
              "isolated": false,
              "racing": false,
              "writes": [],
              "reads": []
            },
            {
              "id": 1,
              "task": 0,
              "kind": "main",
              "strand": null,
              "lines": null,
              "isolated": false,
              "racing": false,
              "writes": [],
              "reads": []
            },
            {
              "id": 2,
              "task": 1,
              "kind": "async<\"1\">",
              "strand": 0,
              "lines": [
                7,
                7
              ],
              "isolated": false,
              "racing": true,
              "writes": [
                "a[1]"
              ],
              "reads": []
            },
            {
              "id": 3,
              "task": 0,
              "kind": "main",
              "strand": 1,
              "lines": [
                9,
                9
              ],
              "isolated": false,
              "racing": true,
              "writes": [],
              "reads": [
                "a[1]",
                "a[2]",
                "a[3]",
                "a[4]",
                "a[5]",
                "a[6]"
              ]
            },
            {
              "id": 4,
              "task": 0,
              "kind": "main",
              "strand": null,
              "lines": null,
              "isolated": false,
              "racing": false,
              "writes": [],
              "reads": []
            }
          ],
          "edges": [
            {
              "from": 0,
              "to": 1,
              "kind": "continue"
            },
            {
              "from": 1,
              "to": 2,
              "kind": "spawn"
            },
            {
              "from": 1,
              "to": 3,
              "kind": "continue"
            },
            {
              "from": 3,
              "to": 4,
              "kind": "continue"
            },
            {
              "from": 2,
              "to": 4,
              "kind": "join"
            }
          ]
        }
    "#]]
    .assert_eq(&json(&picture(1)).unwrap());
}

#[test]
fn isolation_edges_are_drawn_only_where_they_order() {
    let mut stream = Stream::new(GraphBuilder::new());
    let main = TaskId::MAIN;
    for _ in 0..2 {
        stream.event(Event::IsolatedBegin { task: main }).unwrap();
        stream.event(Event::IsolatedEnd { task: main }).unwrap();
    }
    let graph = stream.into_consumer().into_graph();
    let count = |isolation| {
        let picture = Picture::new("", &graph, &Numbers, &HashSet::new(), isolation);
        picture.edges.iter().filter(|edge| edge.kind == EdgeKind::Isolation).count()
    };
    assert_eq!((count(Isolation::Ordered), count(Isolation::MutualExclusion)), (1, 0));
}

#[test]
fn strands_that_only_pass_an_order_on_are_left_out() {
    let mut stream = Stream::new(GraphBuilder::new());
    let (main, child) = (TaskId::MAIN, TaskId(1));
    let promise = PromiseId(0);
    // Main: 0 new 1 begin 2 spawn (3 child) 4 get 8 end 9. Child: 3 begin 5 end 6 set 7.
    for event in [
        Event::PromiseNew { task: main, promise },
        Event::FinishBegin { task: main },
        Event::Spawn { parent: main, child, kind: TaskKind::Async },
        Event::FinishBegin { task: child },
        Event::FinishEnd { task: child },
        Event::PromiseSet { task: child, promise },
        Event::TaskEnd { task: child },
        Event::PromiseGet { task: main, promise },
        Event::FinishEnd { task: main },
    ] {
        stream.event(event).unwrap();
    }
    let picture = Picture::new("", stream.consumer().graph(), &Numbers, &HashSet::new(), Isolation::Ordered);
    let drawn = contract(&picture);
    let edges: Vec<(u32, u32, EdgeKind)> =
        drawn.edges.iter().map(|edge| (edge.from, edge.to, edge.kind)).collect();
    // Left: the start, the strand that spawns, the one that sets, the one after the get, and the end.
    assert_eq!(
        edges,
        [
            (0, 1, EdgeKind::Continue),
            (1, 2, EdgeKind::Spawn),
            (1, 3, EdgeKind::Continue),
            (2, 3, EdgeKind::Promise),
            (3, 4, EdgeKind::Continue),
            (2, 4, EdgeKind::Join),
        ]
    );
    assert_eq!(drawn.nodes.iter().map(|node| node.task).collect::<Vec<_>>(), [0, 0, 1, 0, 0]);
}

#[test]
fn svg_is_the_same_every_time_and_well_formed() {
    let text = svg(&picture(20)).unwrap();
    assert_eq!(text, svg(&picture(20)).unwrap());
    assert!(text.contains("<title>a &amp; \"b\"</title>") && text.contains("async&lt;\"1\"&gt;"));
    assert_eq!(text.matches("<g>").count(), 43, "a group per node");
    assert_eq!(text.matches("fill=\"#fdeaea\"").count(), 2);
    for element in ["<g", "<text", "<title", "<svg", "<marker", "<defs"] {
        let name = &element[1..];
        assert_eq!(text.matches(element).count(), text.matches(&format!("</{name}>")).count(), "{name}");
    }
}

#[test]
fn what_xml_does_not_allow_is_replaced() {
    let picture =
        Picture::new("a\u{fffe}b\u{ffff}", wide(1).graph(), &Numbers, &HashSet::new(), Isolation::Ordered);
    assert!(svg(&picture).unwrap().contains("<title>a\u{fffd}b\u{fffd}</title>"));
}

#[test]
fn the_legend_is_not_cut_off() {
    let text = svg(&picture(1)).unwrap();
    let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
    let width = number(text.split_once("<svg ").unwrap().1.split_once("width=\"").unwrap().1);
    let last = text.split_once("in a race</text>").unwrap().0.rsplit_once("<text x=\"").unwrap().1;
    assert!(number(last) + 9.0 * 6.8 <= width, "{width}");
}

#[test]
fn the_smallest_graph_is_drawn() {
    let graph = GraphBuilder::new().into_graph();
    let picture = Picture::new("", &graph, &Numbers, &HashSet::new(), Isolation::Ordered);
    assert!(svg(&picture).unwrap().contains("<circle"));
}

/// Lays the picture out, and sees that nothing lies on something else.
fn check_layout(picture: &Picture) {
    let drawn = contract(picture);
    let edges: Vec<(u32, u32)> = drawn.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let size = |node: usize| (20.0 + (node % 7) as f64 * 30.0, 10.0 + (node % 5) as f64 * 9.0);
    let sizes: Vec<(f64, f64)> = (0..drawn.nodes.len()).map(size).collect();
    let row = layout::rows(sizes.len(), &edges);
    assert!(edges.iter().all(|&(from, to)| row[from as usize] < row[to as usize]));
    let bends = layout::bend_count(&row, &edges);
    let laid = layout::layout(&sizes, row, &edges);
    assert_eq!(laid.bends.iter().map(Vec::len).sum::<usize>(), bends);
    for a in 0..sizes.len() {
        let (left, right) = (laid.x[a] - sizes[a].0 / 2.0, laid.x[a] + sizes[a].0 / 2.0);
        assert!(left > -0.01 && right < laid.width + 0.01);
        for b in 0..a {
            let apart = (laid.x[a] - laid.x[b]).abs() > (sizes[a].0 + sizes[b].0) / 2.0 - 0.01;
            assert!(laid.row[a] != laid.row[b] || apart, "{a} and {b} overlap");
        }
    }
    assert!(laid.rows.windows(2).all(|rows| rows[0].bottom < rows[1].top));
}

#[test]
fn boxes_do_not_overlap_and_rows_follow_the_edges() {
    check_layout(&picture(60));
}

#[test]
fn graphs_of_random_programs_are_drawn() {
    let mut rng = fastrand::Rng::with_seed(7);
    for number in 0..210 {
        let class = Class::ALL[number % Class::ALL.len()];
        let size = Size::pick(&mut rng);
        let program = generate(class, &mut rng, size);
        let mut stream = Stream::new(GraphBuilder::new());
        run(&program, &mut stream).unwrap();
        let graph = stream.into_consumer().into_graph();
        let picture = Picture::new("random", &graph, &Numbers, &HashSet::new(), Isolation::Ordered);
        check_layout(&picture);
        assert!(svg(&picture).unwrap().ends_with("</svg>\n"));
    }
}

#[test]
fn what_is_too_large_is_refused_with_the_next_step() {
    let error = svg(&picture(2500)).unwrap_err().to_string();
    expect!["the graph is too large for an SVG: 5003 nodes and 3123750 bends of edges, together more than 50000; write it to a .dot file, for Graphviz, or to a .json file"].assert_eq(&error);
    assert!(dot(&picture(2500)).lines().count() > 5000);
}
