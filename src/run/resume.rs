//! What a run that was cut off remembers when it continues: its last decision, and what happened after it. Pure.

use jiff::Timestamp;

use super::Memory;
use super::budget::Spent;
use crate::journal::{IterationOutcome, Summary};

/// The memory with which a run continues. `newest` is when its last record was written.
pub(crate) fn memory_of(summary: &Summary, newest: Option<Timestamp>) -> Memory {
    let written = summary.memory.clone().and_then(|memory| serde_json::from_value(memory).ok());
    let mut memory: Memory = written.unwrap_or_default();
    let remembered = summary.remembered.or(summary.started);
    // The time up to the cut counts; how long nobody was there does not.
    if let (Some(from), Some(to)) = (remembered, newest) {
        let more = u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0);
        if summary.end.is_none() {
            memory.elapsed_ms = memory.elapsed_ms.saturating_add(more);
        }
    }
    // Iterations that ended before their decision was recorded: they are not repeated, and what they spent counts.
    for receipt in summary.undecided() {
        if receipt.outcome != IterationOutcome::Interrupted {
            memory.state.iterations = memory.state.iterations.max(receipt.iteration);
        }
        memory.state.spent = memory.state.spent.and(Spent::of(&receipt.usage, receipt.cost));
        memory.usage.add(&receipt.usage);
        memory.last = Some(receipt.ended.clone());
    }
    for judgement in summary.undecided_judgements() {
        memory.state.spent = memory.state.spent.and(Spent::of_judge(&judgement.usage, judgement.cost));
        memory.usage.add(&judgement.usage);
    }
    for started in summary.undecided_starts() {
        memory.calls.add(started);
    }
    let unfinished = summary.iterations.last().filter(|last| match &last.receipt {
        None => true,
        Some(receipt) => receipt.outcome == IterationOutcome::Interrupted,
    });
    let remark = match unfinished {
        Some(last) => format!(
            "the loop was interrupted in the middle of iteration {}, which is repeated now; what it had done so far is in \
             the working directory.",
            last.iteration
        ),
        None => "the loop was interrupted after the last iteration, and continues now.".to_owned(),
    };
    if !memory.remarks.contains(&remark) {
        memory.remarks.push(remark);
    }
    // Orders that came after the last decision.
    for order in &summary.orders {
        memory.orders.take(order.clone());
    }
    // Orders that ended the run must not end it again.
    memory.orders.stop = false;
    memory.orders.pause = false;
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Usage;
    use crate::journal::{Body, Fact, Judgement, Receipt, Record};

    fn summary(facts: Vec<(i64, Fact)>) -> Summary {
        let mut summary = Summary::default();
        for (seq, (second, fact)) in (0_u64..).zip(facts) {
            let at = Timestamp::from_second(second).unwrap();
            summary.see(&Record { seq, at, body: Body::Loop(fact) }, seq, seq + 1);
        }
        summary
    }

    fn start(iteration: u32) -> Fact {
        Fact::iteration_start(iteration, 9)
    }

    fn end(iteration: u32) -> Fact {
        let usage = Usage { total_tokens: Some(10), ..Usage::default() };
        Fact::IterationEnd { receipt: Box::new(Receipt { iteration, usage, ..Receipt::default() }) }
    }

    fn decision(iterations: u32) -> Fact {
        let mut memory = Memory { elapsed_ms: 1000, ..Memory::default() };
        memory.state.iterations = iterations;
        let memory = serde_json::to_value(memory).ok();
        Fact::Decision { verdict: "again".into(), reason: String::new(), wait_ms: None, outcome: None, memory }
    }

    #[test]
    fn a_finished_iteration_is_never_repeated_and_an_unfinished_one_is() {
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let cut = memory_of(&summary(vec![(1, start(1)), (2, end(1)), (2, decision(1)), (3, start(2))]), at(7));
        assert_eq!((cut.state.iterations, cut.elapsed_ms), (1, 6000));
        assert!(cut.remarks[0].contains("iteration 2, which is repeated now"), "{:?}", cut.remarks);
        let between =
            memory_of(&summary(vec![(1, start(1)), (2, end(1)), (2, decision(1)), (3, start(2)), (4, end(2))]), at(4));
        assert_eq!((between.state.iterations, between.usage.total_tokens), (2, Some(10)));
        let before = memory_of(&summary(vec![(1, start(1))]), at(2));
        assert_eq!(before.state.iterations, 0);
    }

    #[test]
    fn what_a_judge_spent_before_the_cut_counts() {
        let usage = Usage { total_tokens: Some(7), ..Usage::default() };
        let judged = Fact::Judged { judgement: Box::new(Judgement { iteration: 1, usage, ..Judgement::default() }) };
        let cut = memory_of(&summary(vec![(1, start(1)), (2, judged), (3, end(1))]), None);
        assert_eq!((cut.state.spent.tokens, cut.usage.total_tokens, cut.state.spent.iterations), (17, Some(17), 1));
    }

    #[test]
    fn an_interrupted_iteration_is_repeated_once_however_often_the_run_is_resumed() {
        let receipt = Receipt { iteration: 3, outcome: IterationOutcome::Interrupted, ..Receipt::default() };
        let cut = Fact::IterationEnd { receipt: Box::new(receipt) };
        let mut facts = vec![(1, start(1)), (2, end(1)), (3, start(2)), (4, end(2)), (5, start(3)), (6, cut)];
        facts.push((7, decision(2)));
        // Resumed, and stopped before the iteration started.
        facts.extend([(8, decision(2)), (9, decision(2))]);
        assert_eq!(memory_of(&summary(facts), None).state.iterations, 2);
    }
}
