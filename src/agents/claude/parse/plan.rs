//! The plan: TodoWrite states it whole, the Task tools item by item.

use super::{Detail, Item, loose};
use crate::agents::loose::Raw;
use crate::model::cut::one_line;
use crate::model::transcript::{
    LABEL_BYTES_MOST, PLAN_ITEMS_MOST, PlanItem, PlanStatus, Transcript,
};
use std::borrow::Cow;

pub(super) fn todos(raw: Raw<'_>) -> Vec<PlanItem> {
    loose::array(raw)
        .filter_map(|item| {
            let item: Item<'_> = loose::object(Some(item))?;
            let text = loose::text(item.content)?.into_owned();
            let status = loose::text(item.status).unwrap_or_default();
            Some(PlanItem { text, status: plan_status(&status) })
        })
        .collect()
}

/// What is not known to be done is still to do.
pub(super) fn plan_status(status: &str) -> PlanStatus {
    match status {
        "completed" => PlanStatus::Completed,
        "in_progress" => PlanStatus::InProgress,
        _ => PlanStatus::Pending,
    }
}

/// A status as in [`Effect::TaskChanged`](crate::model::transcript::Effect::TaskChanged).
pub(super) fn task_status(status: &str) -> Option<Option<PlanStatus>> {
    match status {
        "" => None,
        "deleted" => Some(None),
        status => Some(Some(plan_status(status))),
    }
}

/// The id of a task just made, from the result's detail or, where there is none, from its sentence
/// `Task #1 created successfully: …`.
pub(super) fn made_task(detail: &Detail<'_>, content: &str) -> Option<String> {
    if let Some(task) = loose::object::<Item<'_>>(detail.task) {
        return loose::text(task.id).map(Cow::into_owned);
    }
    let rest = content.strip_prefix("Task #")?;
    let (id, rest) = rest.split_once(' ')?;
    rest.starts_with("created").then(|| id.to_owned())
}

/// One item was changed; `status` is as in [`Effect::TaskChanged`](crate::model::transcript::Effect::TaskChanged).
pub(super) fn task_changed(
    transcript: &mut Transcript,
    id: &str,
    text: Option<String>,
    status: Option<Option<PlanStatus>>,
) {
    let Some(at) = transcript.tasks.iter().position(|(known, _)| known == id) else {
        return;
    };
    if status == Some(None) {
        transcript.tasks.remove(at);
    } else {
        let item = &mut transcript.tasks[at].1;
        item.status = status.flatten().unwrap_or(item.status);
        if let Some(text) = text {
            item.text = text;
        }
    }
    tasks_are_plan(transcript);
}

/// The whole list, as TaskList shows it.
pub(super) fn listed_tasks(transcript: &mut Transcript, tasks: Raw<'_>) {
    let listed: Vec<_> = loose::array(tasks)
        .take(PLAN_ITEMS_MOST)
        .filter_map(|item| {
            let item: Item<'_> = loose::object(Some(item))?;
            let text = one_line(&loose::text(item.subject)?, LABEL_BYTES_MOST);
            let status = plan_status(&loose::text(item.status)?);
            Some((loose::text(item.id)?.into_owned(), PlanItem { text, status }))
        })
        .collect();
    if !listed.is_empty() {
        transcript.tasks = listed;
        tasks_are_plan(transcript);
    }
}

pub(super) fn tasks_are_plan(transcript: &mut Transcript) {
    let items: Vec<_> = transcript.tasks.iter().map(|(_, item)| item.clone()).collect();
    transcript.plan_is(items);
}
