use std::io::{Read as _, Write as _};

use super::*;

/// A proxy with names of its own, and what it answers to a request.
fn ask(list: &[&str], resolve: fn(Target) -> Addresses, request: &str) -> (String, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refusals = Refusals::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let list: Vec<String> = list.iter().map(|entry| (*entry).to_owned()).collect();
    let (sender, listeners) = mpsc::unbounded_channel();
    sender.send(listener).unwrap();
    let serving =
        Serving { hosts: Hosts::new(&list), refusals: refusals.clone(), room: Arc::new(Semaphore::new(4)), resolve };
    let request = request.to_owned();
    let client = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
            answer.push(byte[0]);
        }
        String::from_utf8(answer).unwrap()
    });
    let answered = runtime.block_on(async {
        tokio::spawn(serve(listeners, Arc::new(serving)));
        tokio::task::spawn_blocking(move || client.join().unwrap()).await.unwrap()
    });
    runtime.shutdown_background();
    (answered, refusals.take())
}

fn leads_inside(_: Target) -> Addresses {
    Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap(), "10.0.0.1".parse().unwrap()]) })
}

/// The first answer is public, the second one is not: whoever asks twice is fooled.
fn rebinds(_: Target) -> Addresses {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    Box::pin(async {
        let first = ASKED.fetch_add(1, Ordering::SeqCst) == 0;
        // Nobody is there: an attempt to connect fails at once or takes its time, and never reaches this machine.
        Ok(vec![if first { "240.0.0.1" } else { "127.0.0.1" }.parse().unwrap()])
    })
}

fn tunnel(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

#[test]
fn a_host_that_is_not_listed_is_refused_and_noted_once() {
    let (answer, refused) = ask(&["good.example"], leads_inside, &tunnel("evil.example:443"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(refused, ["evil.example:443"]);
}

#[test]
fn a_listed_name_that_leads_inside_is_refused() {
    let (answer, refused) = ask(&["good.example"], leads_inside, &tunnel("good.example:443"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(refused, ["good.example:443"]);
}

#[test]
fn a_name_is_looked_up_once_so_that_a_second_answer_changes_nothing() {
    let (answer, refused) = ask(&["good.example"], rebinds, &tunnel("good.example:443"));
    assert!(answer.starts_with("HTTP/1.1 403"), "an address of nobody is not public: {answer}");
    assert_eq!(refused, ["good.example:443"]);
    let (answer, _) = ask(&["good.example"], rebinds, &tunnel("good.example:443"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[test]
fn addresses_and_localhost_need_to_be_listed_themselves() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let target = format!("127.0.0.1:{port}");
    assert!(ask(&["good.example"], leads_inside, &tunnel(&target)).0.starts_with("HTTP/1.1 403"));
    assert!(ask(&["127.0.0.1"], leads_inside, &tunnel(&target)).0.starts_with("HTTP/1.1 403"), "another port");
    for listed in [target.as_str(), "localhost"] {
        assert!(ask(&[listed], leads_inside, &tunnel(&target)).0.starts_with("HTTP/1.1 200"), "{listed}");
    }
    // A listed name may lead to a listed address.
    let name = format!("good.example:{port}");
    assert!(ask(&[&name, &target], leads_inside, &tunnel(&name)).0.starts_with("HTTP/1.1 200"));
}
