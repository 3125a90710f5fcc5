//! A server of tables.

use super::LIMIT;
use super::messages::{Kind, PATH, Reply, Request, to_bytes, to_values};
use super::table::{Spec, Table};
use crate::secret::{self, Secret};
use crate::{interrupt, wire};
use parking_lot::Mutex;
use sampan_core::{Error, Result};
use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

/// Numbers that wait for a proof: a stranger who asks for many loses the first.
const UNPROVED: usize = 256;
/// How often is looked for an interruption.
const LOOK: Duration = Duration::from_millis(50);

/// Who is at a barrier.
#[derive(Default)]
struct Barrier {
    here: HashSet<u64>,
    passed: watch::Sender<u64>,
}

/// What one server knows.
struct Keeper {
    secret: Secret,
    workers: usize,
    /// This server's number, and how many there are.
    place: (usize, usize),
    folder: PathBuf,
    timeout: Duration,
    tables: Mutex<HashMap<String, Arc<Table>>>,
    unproved: Mutex<VecDeque<String>>,
    tokens: Mutex<HashSet<String>>,
    barriers: Mutex<HashMap<String, Arc<Mutex<Barrier>>>>,
    left: Mutex<HashSet<u64>>,
    over: Notify,
}

fn number<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes: Option<Vec<u8>> =
        (0..text.len()).step_by(2).map(|i| text.get(i..i + 2).and_then(|h| u8::from_str_radix(h, 16).ok())).collect();
    bytes?.try_into().ok()
}

impl Keeper {
    fn table(&self, name: &str) -> Result<Arc<Table>> {
        let found = self.tables.lock().get(name).cloned();
        found.ok_or_else(|| Error::invalid(format!("there is no table {name:?} on this server")))
    }

    fn file(&self, folder: &str, table: &str, part: usize) -> PathBuf {
        Path::new(folder).join(format!("{table}.{part}.rows"))
    }

    /// A number to prove the secret with, and what proves it.
    fn admit(&self, kind: Kind, request: &Request) -> Result<Option<Reply>> {
        match kind {
            Kind::Hello => {
                let nonce = secret::token()?;
                let mut unproved = self.unproved.lock();
                unproved.push_back(nonce.clone());
                if unproved.len() > UNPROVED {
                    unproved.pop_front();
                }
                Ok(Some(Reply { text: nonce, ..Reply::default() }))
            }
            Kind::Prove => {
                let mut unproved = self.unproved.lock();
                let at = unproved.iter().position(|n| *n == request.name);
                let known = at.map(|i| unproved.remove(i)).is_some();
                let proof = number::<32>(&request.token);
                if !known || !proof.is_some_and(|p| self.secret.proves(&p, &[b"tables", request.name.as_bytes()])) {
                    return Err(Error::new(sampan_core::error::Kind::PreconditionNotMet, "the secret is another one"));
                }
                let token = secret::token()?;
                self.tokens.lock().insert(token.clone());
                Ok(Some(Reply { text: token, ..Reply::default() }))
            }
            _ if !self.tokens.lock().contains(&request.token) => Err(Error::new(
                sampan_core::error::Kind::PreconditionNotMet,
                "nobody who proved to know the secret asks",
            )),
            _ => Ok(None),
        }
    }

    async fn answer(&self, request: Request) -> Result<Reply> {
        let kind = Kind::try_from(request.kind).map_err(|_| Error::invalid("a call of no known kind"))?;
        if let Some(reply) = self.admit(kind, &request)? {
            return Ok(reply);
        }
        let Request { name, ids, values, numbers, worker, count, .. } = request;
        let values = to_values(&values).ok_or_else(|| Error::invalid("a part of a number"))?;
        let lr = numbers.first().copied().unwrap_or(0.0);
        let mut reply = Reply::default();
        match kind {
            Kind::Hello | Kind::Prove => {}
            Kind::Create => self.create(Spec::from_numbers(&name, &numbers)?)?,
            Kind::Pull => {
                let table = self.table(&name)?;
                self.wait(table.reached(count), || {
                    format!("workers {:?} did not push to table {name:?}", table.missing())
                })
                .await?;
                let most = LIMIT / 4 / table.spec.dim;
                if ids.len() > most {
                    return Err(Error::invalid(format!(
                        "{} rows of table {name:?} in one call, at most {most}",
                        ids.len()
                    )));
                }
                let mut out = Vec::with_capacity(ids.len() * table.spec.dim);
                let mut rows = table.rows.lock();
                ids.iter().try_for_each(|id| rows.read(*id, &mut out))?;
                reply.values = to_bytes(&out);
            }
            Kind::Push => {
                let table = self.table(&name)?;
                let l2 = table.spec.l2;
                table.each(&ids, &values, |rows, id, grad| rows.learn(id, lr, l2, grad))?;
            }
            Kind::PushTogether => self.table(&name)?.push_together(worker as usize, ids, values, count == 0, lr)?,
            Kind::Add => self.table(&name)?.each(&ids, &values, |rows, id, values| rows.add(id, values))?,
            Kind::Set => self.table(&name)?.each(&ids, &values, |rows, id, values| rows.set(id, values))?,
            Kind::Barrier => self.barrier(&name, worker, count).await?,
            Kind::Save => {
                std::fs::create_dir_all(&name)?;
                for table in self.all() {
                    table.rows.lock().save(&self.file(&name, &table.spec.name, self.place.0))?;
                }
            }
            Kind::Load => self.all().iter().try_for_each(|table| self.load(&name, table))?,
            Kind::Count => {
                let (all, hot) = self.table(&name)?.rows.lock().counts();
                reply.numbers = vec![all as u64, hot as u64];
            }
            Kind::Leave => {
                let mut left = self.left.lock();
                left.insert(worker);
                if left.len() >= self.workers {
                    self.over.notify_one();
                }
            }
        }
        Ok(reply)
    }

    fn all(&self) -> Vec<Arc<Table>> {
        self.tables.lock().values().cloned().collect()
    }

    fn create(&self, spec: Spec) -> Result<()> {
        let mut tables = self.tables.lock();
        match tables.get(&spec.name) {
            Some(there) if there.spec == spec => Ok(()),
            Some(there) => {
                Err(Error::invalid(format!("table {:?} is another one: {:?}, not {spec:?}", spec.name, there.spec)))
            }
            None => {
                let name = spec.name.clone();
                tables.insert(name, Arc::new(Table::new(spec, self.workers, self.folder.clone())));
                Ok(())
            }
        }
    }

    /// Takes this server's rows over from the files of all servers that wrote them, however many they were.
    fn load(&self, folder: &str, table: &Table) -> Result<()> {
        let mut part = 0;
        while self.file(folder, &table.spec.name, part).exists() {
            let (mine, servers) = (self.place.0 as u64, self.place.1 as u64);
            table.rows.lock().load(&self.file(folder, &table.spec.name, part), |id| id % servers == mine)?;
            part += 1;
        }
        if part == 0 {
            return Err(Error::invalid(format!("there is no table {:?} in {folder:?}", table.spec.name)));
        }
        Ok(())
    }

    async fn barrier(&self, name: &str, worker: u64, count: u64) -> Result<()> {
        let barrier = self.barriers.lock().entry(name.into()).or_default().clone();
        let (mut passed, now) = {
            let mut b = barrier.lock();
            let now = *b.passed.borrow();
            let passed = b.passed.subscribe();
            b.here.insert(worker);
            if b.here.len() as u64 >= count {
                b.here.clear();
                b.passed.send_modify(|p| *p += 1);
            }
            (passed, now)
        };
        let arrived = passed.wait_for(|p| *p > now);
        self.wait(async { drop(arrived.await) }, || {
            format!("{} of {count} came to barrier {name:?}", barrier.lock().here.len())
        })
        .await
    }

    async fn wait(&self, what: impl Future<Output = ()>, why: impl Fn() -> String) -> Result<()> {
        let late = tokio::time::timeout(self.timeout, what).await.is_err();
        if late { Err(wire::unavailable(format!("{} within {:?}", why(), self.timeout))) } else { Ok(()) }
    }
}

/// The keeper behind gRPC.
#[derive(Clone)]
struct Front(Arc<Keeper>);

impl NamedService for Front {
    const NAME: &'static str = "sampan.Tables";
}

impl UnaryService<Request> for Front {
    type Response = Reply;
    type Future = BoxFuture<Response<Reply>, Status>;

    fn call(&mut self, request: tonic::Request<Request>) -> Self::Future {
        let keeper = self.0.clone();
        Box::pin(async move { keeper.answer(request.into_inner()).await.map(Response::new).map_err(|e| status(&e)) })
    }
}

fn status(error: &Error) -> Status {
    use sampan_core::error::Kind::{PreconditionNotMet, Unavailable};
    let text = error.to_string();
    match error.kind() {
        Unavailable => Status::unavailable(text),
        PreconditionNotMet => Status::permission_denied(text),
        _ => Status::invalid_argument(text),
    }
}

impl Service<http::Request<Body>> for Front {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let front = self.clone();
        Box::pin(async move {
            if request.uri().path() != PATH {
                return Ok(Status::unimplemented("there is one method, Call").into_http());
            }
            let codec = ProstCodec::<Reply, Request>::default();
            let mut grpc = Grpc::new(codec).apply_max_message_size_config(Some(LIMIT), Some(LIMIT));
            Ok(grpc.unary(front, request).await)
        })
    }
}

/// A server of tables, which has an address and waits to be run.
pub struct Server {
    keeper: Arc<Keeper>,
    listener: std::net::TcpListener,
}

impl Server {
    /// Server `place.0` of `place.1`, at an address, for some workers. Rows that do not fit into memory wait in `folder`.
    pub fn bind(
        address: &str,
        secret: Secret,
        workers: usize,
        place: (usize, usize),
        folder: PathBuf,
        timeout: Duration,
    ) -> Result<Server> {
        let listener = std::net::TcpListener::bind(address)
            .map_err(|e| Error::invalid(format!("a parameter server cannot be at {address}: {e}")))?;
        listener.set_nonblocking(true)?;
        let keeper = Keeper {
            secret,
            workers,
            place,
            folder,
            timeout,
            tables: Mutex::default(),
            unproved: Mutex::default(),
            tokens: Mutex::default(),
            barriers: Mutex::default(),
            left: Mutex::default(),
            over: Notify::new(),
        };
        Ok(Server { keeper: Arc::new(keeper), listener })
    }

    /// The port.
    pub fn port(&self) -> Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Serves until every worker has left, or somebody interrupts.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let keeper = self.keeper.clone();
        let served = runtime.block_on(async move {
            let incoming =
                tonic::transport::server::TcpIncoming::from(tokio::net::TcpListener::from_std(self.listener)?)
                    .with_nodelay(Some(true))
                    .with_keepalive(Some(Duration::from_secs(30)));
            let mut interrupted = Ok(());
            let end = async {
                loop {
                    tokio::select! {
                        () = self.keeper.over.notified() => break,
                        () = tokio::time::sleep(LOOK) => {}
                    }
                    interrupted = interrupt::check();
                    if interrupted.is_err() {
                        break;
                    }
                }
            };
            let server = tonic::transport::Server::builder()
                .http2_keepalive_interval(Some(Duration::from_secs(20)))
                .add_service(Front(keeper))
                .serve_with_incoming_shutdown(incoming, end);
            server.await.map_err(|e| wire::unavailable(format!("the parameter server ended: {e}")))?;
            interrupted
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        served
    }
}
