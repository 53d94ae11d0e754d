//! Whose task is this? Every task of the simulation belongs to a scope: one life of one node, or of one client.
//!
//! The runtime below knows tasks and nothing else; crashes, pauses and clocks belong to machines. So each task is
//! wrapped in one that knows its scope, says so (in a thread-local) while it is polled, and thereby hands the scope
//! on to all that it spawns. Then a crash is: no task of the scope is ever polled again, all are dropped. A pause is:
//! their wakers are kept instead of polling them. Drift is: time read in the scope runs at its own rate.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use openraft_rt::AsyncRuntime;
use openraft_rt_sim::{SimJoinError, SimJoinHandle, SimRuntime};

/// One life of one machine or process. A restart is a new scope.
#[derive(Debug)]
pub struct Scope {
    name: String,
    /// How much faster its clock runs than the world's, in millionths.
    drift_ppm: i64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    dead: bool,
    paused: bool,
    tasks_begun: u64,
    /// How to reach every task that is alive.
    tasks: BTreeMap<u64, Waker>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Scope>>> = const { RefCell::new(None) };
    /// Panics of tasks, which the runtime would keep to itself.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

impl Scope {
    /// A scope in which nothing runs yet.
    pub fn new(name: impl Into<String>, drift_ppm: i64) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            drift_ppm,
            inner: Mutex::default(),
        })
    }

    /// The scope of the task that is being polled; `None` is the world: the network, the faults, the checks.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Its clock's rate.
    pub fn drift_ppm(&self) -> i64 {
        self.drift_ppm
    }

    /// Whether it was not killed.
    pub fn is_alive(&self) -> bool {
        !self.inner().dead
    }

    /// How many tasks it has.
    pub fn tasks(&self) -> usize {
        self.inner().tasks.len()
    }

    /// The end, without a chance to say goodbye: from now on none of its tasks is polled, and before time goes on
    /// all are dropped.
    pub fn kill(&self) {
        self.inner().dead = true;
        self.wake_all();
    }

    /// Stops the machine's processor, but not its clock.
    pub fn pause(&self) {
        self.inner().paused = true;
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.inner().paused = false;
        self.wake_all();
    }

    /// Runs `future` as a task of `scope`, whoever asks for it.
    pub fn spawn<F>(scope: Option<Arc<Self>>, future: F) -> Joined<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let task = scope.as_ref().map_or(0, |scope| {
            let mut inner = scope.inner();
            inner.tasks_begun += 1;
            inner.tasks_begun
        });
        Joined(SimRuntime::spawn(Scoped {
            scope,
            task,
            future: Some(Box::pin(future)),
        }))
    }

    fn wake_all(&self) {
        let wakers: Vec<Waker> = self.inner().tasks.values().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The panics of tasks since the last call, with the names of their scopes.
pub fn take_panics() -> Vec<String> {
    PANICS.take()
}

fn note_panic(scope: Option<&Scope>, panic: &(dyn Any + Send)) {
    let what = panic.downcast_ref::<String>().map(String::as_str);
    let what = what.or_else(|| panic.downcast_ref::<&str>().copied());
    let whose = scope.map_or("the world", |scope| &scope.name);
    let note = format!("{whose} panicked: {}", what.unwrap_or("without words"));
    PANICS.with_borrow_mut(|panics| panics.push(note));
}

/// Makes a scope the current one, until dropped.
struct Entered {
    before: Option<Arc<Scope>>,
}

impl Entered {
    fn new(scope: Option<Arc<Scope>>) -> Self {
        let before = CURRENT.replace(scope);
        Self { before }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// A task that knows where it belongs. `None` is its result if it died with its scope.
struct Scoped<F> {
    scope: Option<Arc<Scope>>,
    task: u64,
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Scoped<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let _entered = Entered::new(this.scope.clone());
        if let Some(scope) = &this.scope {
            let mut inner = scope.inner();
            if inner.dead {
                inner.tasks.remove(&this.task);
                drop(inner);
                // Dropped while the scope is entered: what the destructors do, the dead machine does.
                this.future = None;
                return Poll::Ready(None);
            }
            inner
                .tasks
                .entry(this.task)
                .and_modify(|waker| waker.clone_from(context.waker()))
                .or_insert_with(|| context.waker().clone());
            if inner.paused {
                return Poll::Pending;
            }
        }
        let Some(future) = this.future.as_mut() else {
            return Poll::Ready(None);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        if matches!(polled, Ok(Poll::Pending)) {
            return Poll::Pending;
        }
        this.future = None;
        let scope = this.scope.as_deref();
        if let Some(scope) = scope {
            scope.inner().tasks.remove(&this.task);
        }
        match polled {
            Ok(done) => done.map(Some),
            Err(panic) => {
                note_panic(scope, &*panic);
                resume_unwind(panic)
            }
        }
    }
}

/// What a task will return; an error if it was dropped with its scope, or panicked.
pub struct Joined<T>(SimJoinHandle<Option<T>>);

impl<T> Future for Joined<T> {
    type Output = Result<T, SimJoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|joined| match joined {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(SimJoinError::Cancelled),
            Err(error) => Err(error),
        })
    }
}
