//! `--pr`: pushes the branch of a run and opens a pull request with `gh`. This is the only place where git uses the user's own
//! configuration, because a push needs the user's credentials.

use std::time::Duration;

use crate::app::merging::{Branched, say};
use crate::error::UserError;
use crate::process::{Captured, Invocation, Place, StartError, Stdin, capture};
use crate::redact::Redactor;
use crate::run::prompt::title;
use crate::ui::harmless;
use crate::ui::history::{RunDetails, markdown};

const PATIENCE: Duration = Duration::from_secs(120);

/// Pushes and opens. Both can be repeated: a branch that is there is pushed again, a pull request that is open is found.
pub(crate) async fn open(
    branched: &mut Branched,
    base: &str,
    tip: &str,
    goal: &str,
    details: &RunDetails,
) -> Result<u8, UserError> {
    let branch = branched.place.branch.clone();
    let Some(url) = branched.writer.repository.remote("origin") else {
        return Err(UserError::usage("the repository has no remote `origin` to push to")
            .hint("add one: `git remote add origin URL`, or merge here: `ralph merge`"));
    };
    if branched.place.remote.as_ref() != Some(&url) {
        return Err(UserError::usage(format!(
            "the address of `origin` changed since the run started: it is `{}` now; nothing was pushed",
            harmless(&url)
        ))
        .hint(format!("check it; to push there: `git push origin {branch}`")));
    }
    branched.writer.push(&url, tip, &branch).await.map_err(|error| {
        UserError::failed(format!("cannot push `{branch}` to `{}`: {error}", harmless(&url)))
            .hint("ralph uses your own git configuration for this, but not the repository's: credentials and `insteadOf` belong into `~/.gitconfig`")
    })?;
    let _ = say(&format!("pushed `{branch}` to `{}`\n", harmless(&url)));
    let repository = hosted(&url);
    let mut question = words(&["pr", "view", &branch, "--json", "url", "--jq", ".url"]);
    question.extend(repository.iter().flat_map(|name| ["--repo".to_owned(), name.clone()]));
    let found = match gh(branched, question, Vec::new()).await {
        Ok(found) => found,
        Err(StartError::NotFound { .. }) => {
            return say(&format!("`gh` is not installed: open the pull request for `{branch}` yourself\n"));
        }
        Err(error) => return Err(UserError::failed(format!("cannot start `gh`: {error}"))),
    };
    let already = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let address = if found.success() && !already.is_empty() {
        already
    } else {
        create(branched, base, goal, details, repository).await?
    };
    branched.place.pull_request = Some(address.clone());
    branched.save()?;
    say(&format!("pull request: {}\n", harmless(&address)))
}

async fn create(
    branched: &Branched,
    base: &str,
    goal: &str,
    details: &RunDetails,
    repository: Option<String>,
) -> Result<String, UserError> {
    let redactor = Redactor::of_process();
    let clean = |text: String| redactor.text(&text).unwrap_or(text);
    let title = clean(title(goal).chars().take(120).collect());
    let body = clean(format!("{}\n", markdown(details)));
    let mut args = words(&[
        "pr",
        "create",
        "--head",
        &branched.place.branch,
        "--base",
        base,
        "--title",
        &title,
        "--body-file",
        "-",
    ]);
    args.extend(repository.into_iter().flat_map(|name| ["--repo".to_owned(), name]));
    let created = gh(branched, args, body.into_bytes())
        .await
        .map_err(|error| UserError::failed(format!("cannot start `gh`: {error}")))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if created.success() {
        return Ok(said(&created.stdout));
    }
    let why = clean(said(&created.stderr));
    Err(UserError::failed(format!("`gh pr create` failed: {}", harmless(why.lines().last().unwrap_or("no message"))))
        .hint(format!(
            "the branch is pushed; log in with `gh auth login`, then `ralph merge {} --pr`",
            branched.run.id
        )))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Outside of the repository, so that `gh` lets git read nothing of it.
async fn gh(branched: &Branched, args: Vec<String>, stdin: Vec<u8>) -> Result<Captured, StartError> {
    let invocation = Invocation {
        args: args.into_iter().map(Into::into).collect(),
        stdin: if stdin.is_empty() { Stdin::Null } else { Stdin::Bytes(stdin.into()) },
        // It needs the user's own login.
        place: Place::Outside,
        ..Invocation::new("gh", &branched.run.path)
    };
    capture(invocation, PATIENCE, 1024 * 1024).await
}

/// `HOST/OWNER/NAME` of an address, as `gh --repo` takes it.
fn hosted(url: &str) -> Option<String> {
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    let rest = match url.split_once("://") {
        Some(("https" | "http" | "ssh" | "git", rest)) => {
            rest.rsplit_once('@').map_or(rest, |(_, rest)| rest).to_owned()
        }
        Some(_) => return None,
        None if url.starts_with(['/', '.']) => return None,
        None => url.split_once('@').map_or(url, |(_, rest)| rest).replacen(':', "/", 1),
    };
    let mut parts = rest.splitn(2, '/');
    let (host, path) = (parts.next()?.split(':').next()?, parts.next()?);
    (path.split('/').count() == 2 && host.contains('.')).then(|| format!("{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gh_is_told_the_repository_of_an_address() {
        for (url, name) in [
            ("https://github.com/owner/name.git", Some("github.com/owner/name")),
            ("https://user:pass@github.com/owner/name", Some("github.com/owner/name")),
            ("git@github.com:owner/name.git", Some("github.com/owner/name")),
            ("ssh://git@ghe.example.com:2222/owner/name.git", Some("ghe.example.com/owner/name")),
            ("/srv/git/name.git", None),
            ("ext::sh -c x", None),
        ] {
            assert_eq!(hosted(url).as_deref(), name, "{url}");
        }
    }
}
