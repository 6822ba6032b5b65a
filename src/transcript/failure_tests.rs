use super::*;
use FailureClass::{Agent, AgentLimit, Auth, Config, Context, Network, Overload, RateLimit, Refusal};

#[test]
fn messages_of_the_agents_have_their_class() {
    for (message, class) in [
        ("Invalid API key · Fix external API key", Auth),
        ("Not logged in · Please run /login", Auth),
        ("Failed to authenticate. API Error: 403 Your account does not have access", Auth),
        ("Credit balance is too low", Auth),
        ("[API Error: 401 Incorrect API key provided]", Auth),
        ("API key not valid. Please pass a valid API key.", Auth),
        ("Error: API request for getUserInfo failed: 401", Auth),
        ("You've hit your session limit · resets Jan 1, 2100, 12am (UTC)", RateLimit),
        ("API Error: Request rejected (429) · slow down", RateLimit),
        ("You exceeded your current quota. To change your login use /auth", RateLimit),
        ("Prompt is too long · run /compact", Context),
        ("The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).", Context),
        ("[API Error: 400 This model's maximum context length is 8192 tokens]", Context),
        ("API Error: 500 Internal server error", Overload),
        ("The model is overloaded. Please try again later.", Overload),
        ("Error: API request for getUserInfo failed: 500", Overload),
        ("API Error: Unable to connect to API (ConnectionRefused)", Network),
        ("[API Error: exception TypeError: fetch failed sending request]", Network),
        ("[API Error: terminated]", Network),
        ("[API Error: Model stream ended without a finish reason.]", Network),
        ("Error: Couldn't connect to the Amp server at http://127.0.0.1", Network),
        ("error: unknown option '--no-such-flag'", Config),
        ("There's an issue with the selected model (nope). It may not exist", Config),
        ("Gemini CLI is not running in a trusted directory.", Config),
        ("No saved session found with ID 11111111-2222", Config),
        ("which appears to violate our Usage Policy", Refusal),
        ("Reached max session turns for this session.", AgentLimit),
        ("Reached maximum number of turns (2)", AgentLimit),
        ("the answer was empty", Agent),
    ] {
        assert_eq!(Failure::read(None, message).class, class, "{message}");
    }
}

#[test]
fn a_status_counts_more_than_words_unless_it_means_anything() {
    assert_eq!(classify(Some(429), "unauthorized"), Some(RateLimit));
    assert_eq!(classify(Some(529), "x"), Some(Overload));
    assert_eq!(classify(Some(400), "maximum context length"), Some(Context));
    assert_eq!(classify(Some(400), "API key not valid"), Some(Auth));
    assert_eq!(classify(Some(404), "nothing known"), Some(Config));
    assert_eq!(classify(Some(400), "nothing known"), None);
}

#[test]
fn a_status_in_the_text_stands_alone_and_is_announced() {
    assert_eq!(status_in("API Error: 500 x"), Some(500));
    assert_eq!(status_in("Request rejected (429) · x"), Some(429));
    assert_eq!(status_in("unexpected status 503 Service Unavailable"), Some(503));
    assert_eq!(status_in("429 Too Many Requests"), Some(429));
    for none in ["line 500 of the file", "port 5000", "id a-401-b", "error 4011", "äö 401", "file.rs:404:1"] {
        assert_eq!(status_in(none), None, "{none}");
    }
}
