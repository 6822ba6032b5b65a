//! Recognises an agent that repeats its prompt line by line, so that a marker in the prompt is never
//! taken for the agent's own.

use crate::event::Tag;

/// Compares output lines with the prompts. An echo is a prompt in full, or at least its first two lines.
#[derive(Debug)]
pub struct Echo {
    prompts: Vec<Vec<String>>,
    /// The prompt that is being repeated, and its next line.
    at: Option<(usize, usize)>,
    /// The first line of what may become an echo, and blank lines after it.
    held: Vec<String>,
}

impl Echo {
    pub fn new(prompts: &[String]) -> Self {
        let prompts = prompts
            .iter()
            .map(|prompt| prompt.trim().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>())
            .filter(|lines| !lines.is_empty())
            .collect();
        Self { prompts, at: None, held: Vec::new() }
    }

    /// Takes a line and gives it, now or later, to `each` with its tag.
    pub fn line(&mut self, line: &str, each: &mut impl FnMut(Tag, String)) {
        if let Some((prompt, next)) = self.at {
            let lines = &self.prompts[prompt];
            if lines[next] == line.trim_end() {
                if line.trim().is_empty() && !self.held.is_empty() {
                    // A blank line is no evidence yet.
                    self.held.push(line.to_owned());
                } else {
                    self.held.drain(..).for_each(|held| each(Tag::Prompt, held));
                    each(Tag::Prompt, line.to_owned());
                }
                self.at = (next + 1 < lines.len()).then_some((prompt, next + 1));
                return;
            }
            self.flush(each);
        }
        let begins = |lines: &Vec<String>| lines[0] == line.trim_end();
        match self.prompts.iter().position(begins) {
            Some(prompt) if self.prompts[prompt].len() == 1 => each(Tag::Prompt, line.to_owned()),
            Some(prompt) => {
                self.held.push(line.to_owned());
                self.at = Some((prompt, 1));
            }
            None => each(Tag::Ai, line.to_owned()),
        }
    }

    /// What is held was no echo after all.
    pub fn flush(&mut self, each: &mut impl FnMut(Tag, String)) {
        self.at = None;
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
