//! Programs that run when the device or a peer comes up or goes down: without a shell, one after another, each for a limited time.

use std::collections::VecDeque;
use std::process::{Child, Command, Stdio};
use std::time::Instant as Watch;

use chappe_core::Duration;

/// A program to run, with what its environment says.
struct Task {
    words: Vec<String>,
    environment: Vec<(&'static str, String)>,
    limit: Duration,
}

/// The programs that run or wait.
#[derive(Default)]
pub struct Runner {
    waiting: VecDeque<Task>,
    running: Option<(Child, Task, Watch)>,
}

/// Programs that may wait; more are dropped with a message.
const WAITING: usize = 64;

impl Runner {
    /// Queues a program. `words` is the program and its arguments; none is nothing to do.
    pub fn add(
        &mut self,
        words: &[String],
        environment: &[(&'static str, String)],
        limit: Duration,
    ) -> Option<String> {
        if words.is_empty() {
            return None;
        }
        if self.waiting.len() >= WAITING {
            return Some(format!(
                "{} was not run: {WAITING} programs wait already",
                words[0]
            ));
        }
        self.waiting.push_back(Task {
            words: words.to_vec(),
            environment: environment.to_vec(),
            limit,
        });
        None
    }

    /// Starts what waits, and looks after what runs. Returns what went wrong.
    pub fn turn(&mut self) -> Option<String> {
        if let Some((child, task, since)) = &mut self.running {
            let name = task.words[0].clone();
            let ended = match child.try_wait() {
                Ok(Some(status)) if status.success() => None,
                Ok(Some(status)) => Some(format!("{name} failed: {status}")),
                Ok(None) if since.elapsed().as_nanos() < u128::from(task.limit.nanos()) => {
                    return None;
                }
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    let limit = task.limit.as_secs_f64();
                    Some(format!("{name} was ended: it ran for more than {limit} s"))
                }
                Err(error) => Some(format!("cannot wait for {name}: {error}")),
            };
            self.running = None;
            if ended.is_some() {
                return ended;
            }
        }
        let task = self.waiting.pop_front()?;
        let mut command = Command::new(&task.words[0]);
        command
            .args(&task.words[1..])
            .envs(task.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => {
                self.running = Some((child, task, Watch::now()));
                None
            }
            Err(error) => Some(format!("cannot run {}: {error}", task.words[0])),
        }
    }

    /// Runs everything that waits to its end, each for its time. Returns what went wrong.
    pub fn finish(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        while self.running.is_some() || !self.waiting.is_empty() {
            wrong.extend(self.turn());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str], limit: u64) -> Vec<String> {
        let mut runner = Runner::default();
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let environment = [("CHAPPE_PEER", "hill; touch /".to_owned())];
        runner.add(&words, &environment, Duration::from_millis(limit));
        runner.finish()
    }

    /// Goal: a hook runs without a shell, with its environment; one that fails, is missing or takes too long is reported and
    /// holds nothing up.
    #[test]
    fn hooks_are_run_and_limited() {
        assert_eq!(run(&[], 1_000), Vec::<String>::new());
        assert_eq!(run(&["true"], 5_000), Vec::<String>::new());
        let failed = run(&["test", "$CHAPPE_PEER", "=", "hill"], 5_000);
        assert!(failed[0].contains("failed"), "{failed:?}");
        let told = run(
            &["sh", "-c", "test \"$CHAPPE_PEER\" = 'hill; touch /'"],
            5_000,
        );
        assert_eq!(told, Vec::<String>::new());
        let watch = Watch::now();
        let slow = run(&["sleep", "60"], 100);
        assert!(
            slow[0].contains("was ended") && watch.elapsed().as_secs() < 30,
            "{slow:?}"
        );
        assert!(run(&["/no/such/program"], 100)[0].contains("cannot run"));
    }
}
