use super::*;

fn hat(id: &str, triggers: &[&str], publishes: &[&str]) -> Hat {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Hat { id: id.into(), name: id.into(), triggers: owned(triggers), publishes: owned(publishes), ..Hat::default() }
}

fn hats() -> Hats {
    Hats {
        hats: vec![
            hat("planner", &["task.start", "build.blocked"], &["build.task"]),
            hat("builder", &["build.task"], &["build.done", "build.blocked"]),
            hat("reviewer", &["build.done"], &["review.*"]),
            hat("anyone", &["*"], &["*"]),
        ],
        starting_event: None,
    }
}

fn topic(topic: &str) -> Topic {
    Topic { topic: topic.into(), payload: "p".into() }
}

fn next_hat(board: &mut Board) -> Option<String> {
    board.activate(&hats()).map(|active| active.hat.id)
}

#[test]
fn events_choose_the_next_hat_in_the_order_they_came() {
    let mut board = Board::default();
    board.publish(&hats(), None, &topic("task.start"));
    assert_eq!(next_hat(&mut board).as_deref(), Some("planner"));
    board.publish(&hats(), Some("planner"), &topic("build.done"));
    board.publish(&hats(), Some("planner"), &topic("build.task"));
    board.publish(&hats(), Some("planner"), &topic("build.task"));
    assert_eq!(next_hat(&mut board).as_deref(), Some("reviewer"));
    assert_eq!(board.activate(&hats()).unwrap().events.len(), 2, "a hat gets all of its events at once");
    assert_eq!(next_hat(&mut board), None);
}

#[test]
fn a_named_topic_comes_before_a_star() {
    let mut board = Board::default();
    assert_eq!(board.publish(&hats(), None, &topic("build.task")).heard_by, ["builder"]);
    assert_eq!(board.publish(&hats(), None, &topic("strange")).heard_by, ["anyone"]);
}

#[test]
fn whoever_speaks_outside_the_list_hears_of_it() {
    let mut board = Board::default();
    let delivery = board.publish(&hats(), Some("builder"), &topic("task.start"));
    assert_eq!(delivery.heard_by, ["planner"]);
    assert!(delivery.remark.unwrap().contains("not in its `publishes`"));
    assert_eq!(board.publish(&hats(), Some("reviewer"), &topic("review.ok")).remark, None);
}

#[test]
fn an_event_that_nobody_hears_is_told() {
    let alone = Hats { hats: vec![hat("one", &["a"], &["b"])], starting_event: None };
    let delivery = Board::default().publish(&alone, Some("one"), &topic("b"));
    assert!(delivery.heard_by.is_empty() && delivery.remark.unwrap().contains("no hat is triggered"));
}

#[test]
fn a_hat_is_worn_only_so_often() {
    let mut hats = hats();
    hats.hats[1].max_activations = Some(1);
    let mut board = Board::default();
    board.publish(&hats, None, &topic("build.task"));
    let builder = board.activate(&hats).unwrap().hat;
    assert!(board.is_exhausted(&builder));
    assert!(board.publish(&hats, None, &topic("build.task")).heard_by.is_empty());
}

#[test]
fn a_board_survives_the_disk() {
    let mut board = Board::default();
    board.publish(&hats(), None, &topic("build.task"));
    let text = serde_json::to_string(&board).unwrap();
    assert_eq!(serde_json::from_str::<Board>(&text).unwrap(), board);
}
