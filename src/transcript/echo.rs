//! Recognises an agent that repeats its prompt line by line, so that a marker in the prompt is never
//! taken for the agent's own.

use crate::event::Tag;

/// Compares output lines with the prompts. An echo is a prompt in full, or at least its first two lines.
#[derive(Debug)]
pub(crate) struct Echo {
    prompts: Vec<Vec<String>>,
    /// The prompts that are being repeated, each with its next line.
    at: Vec<(usize, usize)>,
    /// The first line of what may become an echo, and blank lines after it.
    held: Vec<String>,
}

impl Echo {
    pub(crate) fn new(prompts: &[String]) -> Self {
        let prompts = prompts
            .iter()
            .map(|prompt| prompt.trim().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>())
            .filter(|lines| !lines.is_empty())
            .collect();
        Self { prompts, at: Vec::new(), held: Vec::new() }
    }

    /// Takes a line and gives it, now or later, to `each` with its tag.
    pub(crate) fn line(&mut self, line: &str, each: &mut impl FnMut(Tag, String)) {
        if self.prompts.is_empty() {
            return each(Tag::Ai, line.to_owned());
        }
        let text = line.trim_end();
        let goes_on = |&(prompt, next): &(usize, usize)| self.prompts[prompt][next] == text;
        let mut following: Vec<(usize, usize)> = self.at.iter().copied().filter(goes_on).collect();
        let repeats = !following.is_empty();
        if !repeats {
            self.flush(each);
            following =
                (0..self.prompts.len()).map(|prompt| (prompt, 0)).filter(|at| self.prompts[at.0][0] == text).collect();
        }
        if following.is_empty() {
            return each(Tag::Ai, line.to_owned());
        }
        let complete = following.iter().any(|&(prompt, next)| next + 1 == self.prompts[prompt].len());
        let evidence = complete || (repeats && !text.is_empty()) || (repeats && self.held.is_empty());
        self.at = following.into_iter().map(|(prompt, next)| (prompt, next + 1)).collect();
        self.at.retain(|&(prompt, next)| next < self.prompts[prompt].len());
        if evidence {
            self.held.drain(..).for_each(|held| each(Tag::Prompt, held));
            each(Tag::Prompt, line.to_owned());
        } else {
            // One line, or a blank one after it, is no evidence yet.
            self.held.push(line.to_owned());
        }
    }

    /// What is held was no echo after all.
    pub(crate) fn flush(&mut self, each: &mut impl FnMut(Tag, String)) {
        self.at.clear();
        self.held.drain(..).for_each(|held| each(Tag::Ai, held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(prompts: &[&str], output: &str) -> Vec<(Tag, String)> {
        let mut echo = Echo::new(&prompts.iter().map(|&prompt| prompt.to_owned()).collect::<Vec<_>>());
        let mut all = Vec::new();
        for line in output.lines() {
            echo.line(line, &mut |tag, line| all.push((tag, line)));
        }
        echo.flush(&mut |tag, line| all.push((tag, line)));
        assert_eq!(
            all.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n"),
            output,
            "no line is lost or moved"
        );
        all
    }

    fn tags(prompts: &[&str], output: &str) -> String {
        tagged(prompts, output).iter().map(|(tag, _)| if *tag == Tag::Prompt { 'P' } else { 'A' }).collect()
    }

    #[test]
    fn a_prompt_repeated_in_full_is_prompt() {
        assert_eq!(tags(&["do\n\nit"], "hello\ndo\n\nit\nbye"), "APPPA");
        assert_eq!(tags(&["do it"], "do it\ndo it now"), "PA");
    }

    #[test]
    fn the_users_part_alone_is_prompt_too() {
        assert_eq!(tags(&["do\nit\n\nloop context", "do\nit"], "do\nit\nworking"), "PPA");
        assert_eq!(tags(&["do it. X\n\nloop context", "do it. X"], "do it. X"), "P");
        assert_eq!(tags(&["do it. X\n\nloop context", "do it. X"], "do it. X\n\nloop context\nmore"), "PPPA");
        assert_eq!(tags(&["rules\nfirst\ndo\nit", "do\nit"], "do\nit\nworking"), "PPA");
    }

    #[test]
    fn one_equal_line_of_many_is_the_agents() {
        assert_eq!(tags(&["do\nit\nwell"], "do\nsomething"), "AA");
        assert_eq!(tags(&["do\n\nit"], "do\n\nother"), "AAA");
        assert_eq!(tags(&["do\nit"], "do"), "A");
        assert_eq!(tags(&["do\nit"], "do\ndo\nit"), "APP");
    }

    #[test]
    fn an_echo_that_breaks_off_is_still_no_word_of_the_agent() {
        assert_eq!(
            tags(&["When done print\n<promise>COMPLETE</promise>\nGo"], "When done print\n<promise>COMPLETE</promise>"),
            "PP"
        );
    }
}
