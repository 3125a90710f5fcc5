//! A worker's side of the tables.

use super::messages::{Kind, PATH, Reply, Request, to_bytes, to_values};
use super::table::Spec;
use super::{LIMIT, PIECE};
use crate::secret::Secret;
use crate::{interrupt, wire};
use sampan_core::{Error, Result};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

/// What happens with values that are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Gradients, applied at once.
    AtOnce,
    /// Gradients, applied when those of all workers are there.
    Together,
    /// Added.
    Added,
    /// Put in the place of what is there.
    Set,
}

#[derive(Clone)]
struct Peer {
    address: String,
    channel: Channel,
    token: String,
    worker: u64,
}

impl Peer {
    async fn call(&self, mut request: Request) -> std::result::Result<Reply, Status> {
        if request.token.is_empty() {
            request.token.clone_from(&self.token);
        }
        request.worker = self.worker;
        let mut grpc =
            Grpc::new(self.channel.clone()).max_decoding_message_size(LIMIT).max_encoding_message_size(LIMIT);
        let ready = grpc.ready().await;
        ready.map_err(|e| Status::unavailable(e.to_string()))?;
        let codec = ProstCodec::<Request, Reply>::default();
        grpc.unary(tonic::Request::new(request), PathAndQuery::from_static(PATH), codec).await.map(|r| r.into_inner())
    }

    fn failed(&self, status: &Status) -> Error {
        let text = format!("the parameter server at {}: {}", self.address, status.message());
        match status.code() {
            Code::InvalidArgument => Error::invalid(text),
            Code::PermissionDenied => Error::new(sampan_core::error::Kind::PreconditionNotMet, text),
            _ => wire::unavailable(text),
        }
    }
}

/// A worker's connections to all servers.
pub struct Client {
    runtime: Runtime,
    peers: Vec<Peer>,
}

impl Client {
    /// Connects worker `worker` to all servers, which may still be on their way.
    pub fn connect(addresses: &[String], secret: &Secret, worker: usize, timeout: Duration) -> Result<Client> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let end = Instant::now() + timeout;
        let mut peers = Vec::new();
        for address in addresses {
            let endpoint = Endpoint::from_shared(format!("http://{address}"))
                .map_err(|e| Error::invalid(format!("{address:?} is no address of a parameter server: {e}")))?
                .connect_timeout(Duration::from_secs(5))
                .timeout(timeout + Duration::from_secs(5))
                .tcp_nodelay(true)
                .http2_keep_alive_interval(Duration::from_secs(20))
                .keep_alive_while_idle(true);
            let channel = loop {
                interrupt::check()?;
                match runtime.block_on(endpoint.connect()) {
                    Ok(channel) => break channel,
                    Err(e) if Instant::now() > end => {
                        return Err(wire::unavailable(format!(
                            "no parameter server came to {address} within {timeout:?}: {e}"
                        )));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            };
            let mut peer = Peer { address: address.clone(), channel, token: String::new(), worker: worker as u64 };
            let met = runtime.block_on(async {
                let nonce = peer.call(Request { kind: Kind::Hello as i32, ..Request::default() }).await?.text;
                let proof = secret.proof(&[b"tables", nonce.as_bytes()]);
                let token = proof.iter().map(|b| format!("{b:02x}")).collect();
                peer.call(Request { kind: Kind::Prove as i32, name: nonce, token, ..Request::default() }).await
            });
            peer.token = met.map_err(|s| peer.failed(&s))?.text;
            peers.push(peer);
        }
        Ok(Client { runtime, peers })
    }

    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.peers.len()
    }

    /// Makes calls, each to a server, all at once, and gives the answers in their order.
    fn call_each(&self, calls: Vec<(usize, Request)>) -> Result<Vec<Reply>> {
        let peers = &self.peers;
        self.runtime.block_on(async {
            // Those to one server go one after the other, so that pieces arrive in order.
            let mut lanes: Vec<Vec<(usize, Request)>> = vec![Vec::new(); peers.len()];
            let count = calls.len();
            for (at, (server, request)) in calls.into_iter().enumerate() {
                lanes[server].push((at, request));
            }
            let mut tasks = tokio::task::JoinSet::new();
            for (server, lane) in lanes.into_iter().enumerate() {
                let peer = peers[server].clone();
                tasks.spawn(async move {
                    let mut found = Vec::new();
                    for (at, request) in lane {
                        found.push((at, peer.call(request).await.map_err(|s| peer.failed(&s))?));
                    }
                    Ok::<_, Error>(found)
                });
            }
            let mut replies = vec![Reply::default(); count];
            loop {
                tokio::select! {
                    done = tasks.join_next() => {
                        let Some(done) = done else { return Ok(replies) };
                        let found = done.map_err(|e| wire::unavailable(format!("a call was lost: {e}")))??;
                        found.into_iter().for_each(|(at, reply)| replies[at] = reply);
                    }
                    () = tokio::time::sleep(Duration::from_millis(50)) => interrupt::check()?,
                }
            }
        })
    }

    fn call_all(&self, kind: Kind, name: &str, count: u64, numbers: &[f64]) -> Result<Vec<Reply>> {
        let request =
            Request { kind: kind as i32, name: name.into(), count, numbers: numbers.to_vec(), ..Request::default() };
        self.call_each((0..self.peers.len()).map(|server| (server, request.clone())).collect())
    }

    /// Makes a table on all servers, or finds it there.
    pub fn create(&self, spec: &Spec) -> Result<()> {
        self.call_all(Kind::Create, &spec.name, 0, &spec.numbers()).map(drop)
    }

    /// Places of ids by server, in pieces of a message each.
    fn pieces(&self, ids: &[u64], dim: usize) -> Vec<(usize, Vec<usize>)> {
        let servers = self.peers.len();
        let mut own = vec![Vec::new(); servers];
        for (at, id) in ids.iter().enumerate() {
            own[(id % servers as u64) as usize].push(at);
        }
        let rows = (PIECE / dim.max(1)).max(1);
        let cut = |(server, places): (usize, Vec<usize>)| {
            places.chunks(rows).map(|part| (server, part.to_vec())).collect::<Vec<_>>()
        };
        own.into_iter().enumerate().flat_map(cut).collect()
    }

    /// The values of rows, after so many rounds of all workers together.
    pub fn pull(&self, table: &str, dim: usize, ids: &[u64], version: u64) -> Result<Vec<f32>> {
        let pieces = self.pieces(ids, dim);
        let ask = |(server, places): &(usize, Vec<usize>)| {
            let ids = places.iter().map(|&at| ids[at]).collect();
            (
                *server,
                Request { kind: Kind::Pull as i32, name: table.into(), ids, count: version, ..Request::default() },
            )
        };
        let replies = self.call_each(pieces.iter().map(ask).collect())?;
        let mut out = vec![0.0; ids.len() * dim];
        for ((_, places), reply) in pieces.iter().zip(replies) {
            let values = to_values(&reply.values).filter(|v| v.len() == places.len() * dim);
            let values =
                values.ok_or_else(|| Error::invalid(format!("a server gave other rows of table {table:?}")))?;
            for (&at, row) in places.iter().zip(values.chunks_exact(dim)) {
                out[at * dim..(at + 1) * dim].copy_from_slice(row);
            }
        }
        Ok(out)
    }

    /// Gives values of rows to their servers.
    pub fn push(&self, table: &str, dim: usize, ids: &[u64], values: &[f32], lr: f64, how: Pushed) -> Result<()> {
        if ids.len() * dim != values.len() {
            return Err(Error::invalid(format!("{} values for {} rows of {dim}", values.len(), ids.len())));
        }
        let kind = match how {
            Pushed::AtOnce => Kind::Push,
            Pushed::Together => Kind::PushTogether,
            Pushed::Added => Kind::Add,
            Pushed::Set => Kind::Set,
        };
        let mut pieces = self.pieces(ids, dim);
        if how == Pushed::Together {
            // A server without rows of this worker must know as well that it is done.
            for server in 0..self.peers.len() {
                if !pieces.iter().any(|(s, _)| *s == server) {
                    pieces.push((server, Vec::new()));
                }
            }
        }
        let mut left: Vec<u64> = vec![0; self.peers.len()];
        pieces.iter().for_each(|(server, _)| left[*server] += 1);
        let mut give = |(server, places): &(usize, Vec<usize>)| {
            left[*server] -= 1;
            let mut rows = Vec::with_capacity(places.len() * dim);
            places.iter().for_each(|&at| rows.extend_from_slice(&values[at * dim..(at + 1) * dim]));
            let request = Request {
                kind: kind as i32,
                name: table.into(),
                ids: places.iter().map(|&at| ids[at]).collect(),
                values: to_bytes(&rows),
                numbers: vec![lr],
                count: left[*server],
                ..Request::default()
            };
            (*server, request)
        };
        let calls = pieces.iter().map(&mut give).collect();
        self.call_each(calls).map(drop)
    }

    /// Waits until so many workers are here.
    pub fn barrier(&self, name: &str, workers: usize) -> Result<()> {
        let request =
            Request { kind: Kind::Barrier as i32, name: name.into(), count: workers as u64, ..Request::default() };
        self.call_each(vec![(0, request)]).map(drop)
    }

    /// Writes all tables into a folder, each server its rows.
    pub fn save(&self, folder: &str) -> Result<()> {
        self.call_all(Kind::Save, folder, 0, &[]).map(drop)
    }

    /// Takes rows over that `save` wrote, with this many servers or another number.
    pub fn load(&self, folder: &str) -> Result<()> {
        self.call_all(Kind::Load, folder, 0, &[]).map(drop)
    }

    /// How many rows a table has, and how many of them are in memory.
    pub fn count(&self, table: &str) -> Result<(u64, u64)> {
        let replies = self.call_all(Kind::Count, table, 0, &[])?;
        let sum = |at: usize| replies.iter().filter_map(|r| r.numbers.get(at)).sum();
        Ok((sum(0), sum(1)))
    }

    /// Says that this worker is done; servers end when all are.
    pub fn leave(&self) -> Result<()> {
        self.call_all(Kind::Leave, "", 0, &[]).map(drop)
    }
}
