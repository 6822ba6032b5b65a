//! A real browser, driven over its debugging protocol through two named pipes: no port, no library.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The browsers that would do.
pub const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const PATIENCE: Duration = Duration::from_secs(60);

pub fn installed() -> Option<String> {
    let works = |name: &&str| {
        let version = Command::new(name).arg("--version").stdin(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    };
    BROWSERS.iter().find(|name| works(name)).map(|name| (*name).to_owned())
}

pub struct Browser {
    child: Child,
    _profile: tempfile::TempDir,
    commands: File,
    messages: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// What the page complained about.
    pub complaints: Vec<String>,
}

impl Browser {
    pub fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = profile.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (commands, messages) = (pipe("commands"), pipe("messages"));
        let child = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<"$COMMANDS" 4>"$MESSAGES""#, "sh", program])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"])
            .args(["--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"])
            .args(["--hide-scrollbars", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .arg("about:blank")
            .env("COMMANDS", &commands)
            .env("MESSAGES", &messages)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = OpenOptions::new().write(true).open(commands).unwrap();
        let mut reader = BufReader::new(File::open(messages).unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while reader.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
                bytes.pop();
                let Ok(message) = serde_json::from_slice(&bytes) else { break };
                if sender.send(message).is_err() {
                    break;
                }
                bytes.clear();
            }
        });
        let mut browser =
            Self { child, _profile: profile, commands, messages, last: 0, session: None, complaints: Vec::new() };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &target);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone().into();
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.messages.recv_timeout(PATIENCE).expect("the browser hangs");
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.hear(&answer);
        }
    }

    fn hear(&mut self, event: &Value) {
        let is_bad = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
            _ => false,
        };
        if is_bad {
            self.complaints.push(event["params"].to_string());
        }
    }

    pub fn size(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    pub fn scheme(&mut self, name: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": name }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
        self.wait("document.readyState === 'complete'");
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let start = Instant::now();
        while self.eval(&format!("!!({expression})")) != Value::Bool(true) {
            if start.elapsed() > PATIENCE {
                let page = self.eval("document.body.innerText.slice(0, 1500)");
                panic!("never true: {expression}\n{page}\n{:?}", self.complaints);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn wait_for_text(&mut self, text: &str) {
        self.wait(&format!("document.body.innerText.includes({})", Value::from(text)));
    }

    /// Clicks the first element whose text begins so.
    pub fn click(&mut self, selector: &str, text: &str) {
        let (selector, text) = (Value::from(selector), Value::from(text));
        let find = format!(
            "[...document.querySelectorAll({selector})].find((one) => one.innerText.trim().startsWith({text}) && one.offsetParent)"
        );
        self.wait(&find);
        self.eval(&format!("{find}.click()"));
    }

    pub fn screenshot(&mut self, path: &Path) -> usize {
        use std::process::Stdio;
        let answer = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        let encoded = answer["data"].as_str().unwrap();
        let mut decode =
            Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(File::create(path).unwrap()).spawn().unwrap();
        decode.stdin.take().unwrap().write_all(encoded.as_bytes()).unwrap();
        assert!(decode.wait().unwrap().success());
        encoded.len()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let start = Instant::now();
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if start.elapsed() > Duration::from_secs(10) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
