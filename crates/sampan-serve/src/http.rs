//! The server: addresses, statuses, and its end.

use crate::Options;
use crate::metrics;
use crate::protocol::{self, Given, Request, Wrong, bad};
use crate::repository::{Model, Repository};
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{self, DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use sampan_core::Tensor;
use sampan_kernels::parallel;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Cores whose requests one thread reads and answers.
const COMPUTING: usize = 4;
/// Bytes of JSON that take so long to read or to write that other requests should not wait for it.
const LONG: usize = 64 << 10;

const BINARY_HEADER: &str = "inference-header-content-length";

/// A server that listens already.
pub struct Server {
    options: Options,
    listener: TcpListener,
    repository: Arc<Repository>,
    runtime: tokio::runtime::Runtime,
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = (status, as_json(&json!({ "error": self.1 }))).into_response();
        if matches!(self.0, 429 | 503) {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

fn as_json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

impl Server {
    /// Loads the models and begins to listen. `say` is told what happens to them.
    pub fn new(options: Options, say: impl Fn(&str)) -> io::Result<Server> {
        if !options.models.is_dir() {
            let message = format!("{} is no folder", options.models.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        // One thread moves the bytes of what several cores compute; more of them would mostly wake each other.
        let threads = parallel::num_threads().div_ceil(COMPUTING);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let repository = Arc::new(Repository::new(options.clone()));
        repository.refresh().iter().for_each(|line| say(line));
        let listener = runtime.block_on(TcpListener::bind(options.address))?;
        Ok(Server { options, listener, repository, runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `stop` is done, or the process is asked to end; what has begun is finished first.
    pub fn run(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<()> {
        let Server { options, listener, repository, runtime } = self;
        let (say, grace) = (Arc::new(say), options.grace);
        runtime.block_on(async move {
            let (folder, told, every) = (repository.clone(), say.clone(), options.reload);
            let looking = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(every.max(Duration::from_millis(10))).await;
                    let folder = folder.clone();
                    // Reading files and packing weights takes a while.
                    let said = tokio::task::spawn_blocking(move || folder.refresh()).await.unwrap_or_default();
                    said.iter().for_each(|line| told(line));
                }
            });
            let (ask, asked) = tokio::sync::watch::channel(false);
            tokio::spawn(async move {
                tokio::select! { () = stop => {}, () = signal() => {} }
                let _ = ask.send(true);
            });
            let told = |mut asked: tokio::sync::watch::Receiver<bool>| async move {
                // An error means that nobody can ask any more.
                let _ = asked.wait_for(|stop| *stop).await;
            };
            let serving =
                axum::serve(listener, routes(repository, &options)).with_graceful_shutdown(told(asked.clone()));
            let late = async {
                told(asked).await;
                tokio::time::sleep(grace).await;
            };
            let ended = tokio::select! {
                ended = serving.into_future() => ended,
                () = late => Err(io::Error::new(io::ErrorKind::TimedOut, "some requests were not done in time")),
            };
            looking.abort();
            ended
        })
    }
}

/// The process is asked to end.
async fn signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    if let Ok(mut end) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! { _ = interrupt => {}, _ = end.recv() => {} }
        return;
    }
    let _ = interrupt.await;
}

type Models = State<Arc<Repository>>;

fn routes(repository: Arc<Repository>, options: &Options) -> Router {
    let yes = || async { StatusCode::OK };
    let pages = options.pages.clone();
    Router::new()
        .route("/v2/health/live", get(yes))
        .route("/v2/health/ready", get(yes))
        .route("/v2", get(server))
        .route("/v2/", get(server))
        .route("/v2/repository/index", post(|State(r): Models| async move { as_json(&r.index()) }))
        .route("/v2/models/{name}", get(about))
        .route("/v2/models/{name}/ready", get(ready))
        .route("/v2/models/{name}/infer", post(infer))
        .route("/v2/models/{name}/versions/{version}", get(about))
        .route("/v2/models/{name}/versions/{version}/ready", get(ready))
        .route("/v2/models/{name}/versions/{version}/infer", post(infer))
        .route("/metrics", get(counters))
        .fallback(move |uri: Uri| page(pages.clone(), uri))
        .layer(DefaultBodyLimit::max(options.max_body))
        .with_state(repository)
}

async fn server() -> Response {
    let extensions = ["binary_tensor_data", "model_repository"];
    as_json(&json!({ "name": "sampan", "version": env!("CARGO_PKG_VERSION"), "extensions": extensions }))
}

async fn counters(State(repository): Models) -> Response {
    let text = metrics::text(&repository.metrics());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// A file of the folder of pages; nothing outside of it.
async fn page(pages: Option<std::path::PathBuf>, uri: Uri) -> Response {
    let missing = Wrong(404, format!("there is nothing at {}", uri.path())).into_response();
    let Some(folder) = pages else { return missing };
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let plain = path.split('/').all(|part| !part.starts_with('.') && !part.contains(['\\', '%', ':']));
    let kind = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let file = folder.join(path);
    let read = tokio::task::spawn_blocking(move || std::fs::read(file));
    match read.await {
        Ok(Ok(bytes)) if plain => ([(header::CONTENT_TYPE, kind)], bytes).into_response(),
        _ => missing,
    }
}

/// The parts of an address: a model, and a version perhaps.
#[derive(Clone)]
struct Named(String, Option<String>);

impl Named {
    fn of(parts: &[(String, String)]) -> Named {
        let part = |name: &str| parts.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        Named(part("name").unwrap_or_default(), part("version"))
    }

    fn find(&self, repository: &Repository) -> Result<Arc<Model>, Wrong> {
        let Named(name, version) = self;
        let found = repository.find(name, version.as_deref());
        found.ok_or_else(|| {
            let version = version.as_ref().map_or(String::new(), |v| format!(" version {v}"));
            Wrong(404, format!("there is no model `{name}`{version}"))
        })
    }
}

type Parts = Path<Vec<(String, String)>>;

async fn ready(State(repository): Models, Path(parts): Parts) -> Result<StatusCode, Wrong> {
    Named::of(&parts).find(&repository).map(|_| StatusCode::OK)
}

async fn about(State(repository): Models, Path(parts): Parts) -> Result<Response, Wrong> {
    let model = Named::of(&parts).find(&repository)?;
    let mut metadata = model.metadata.clone();
    metadata["versions"] = json!(repository.versions(&model.name));
    Ok(as_json(&metadata))
}

async fn infer(
    State(repository): Models,
    Path(parts): Parts,
    headers: HeaderMap,
    asked: extract::Request,
) -> Result<Response, Response> {
    let most = repository.max_body();
    let model = Named::of(&parts).find(&repository).and_then(|model| {
        // Asked before the body is read, which a model without room need not wait for.
        let too_long = asked.body().size_hint().lower() > most as u64;
        let refusal = if too_long { Some(too_large(most)) } else { model.batcher.full() };
        refusal.map_or(Ok(model), Err)
    });
    let mut body = asked.into_body();
    let read = match model {
        Ok(model) => pieces(&mut body, most).await.map(|pieces| (model, pieces)),
        Err(refusal) => Err(refusal),
    };
    let (model, pieces) = read.map_err(|refusal| {
        // Who waits to be told to go on sends no body; what others send passes by while they hear the answer.
        if !headers.contains_key(header::EXPECT) {
            tokio::spawn(discard(body, most));
        }
        refusal.into_response()
    })?;
    answered(&model, &headers, pieces).await.map_err(Wrong::into_response)
}

fn too_large(most: usize) -> Wrong {
    Wrong(413, format!("a body of more than {most} bytes"))
}

/// Shorter pieces of a body are joined: a list of them would take more room than they do.
const SHORT: usize = 4096;

/// A body as it comes, of so many bytes at most.
async fn pieces(body: &mut Body, most: usize) -> Result<Vec<Bytes>, Wrong> {
    let (mut found, mut short, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let frame = frame.map_err(|e| bad(format!("the body ends too soon: {e}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        bytes += piece.len();
        if bytes > most {
            return Err(too_large(most));
        }
        if piece.len() < SHORT {
            short.extend_from_slice(&piece);
            continue;
        }
        found.extend((!short.is_empty()).then(|| Bytes::from(std::mem::take(&mut short))));
        found.push(piece);
    }
    found.push(short.into());
    Ok(found)
}

/// Lets a body pass by, or so many bytes of it: who is still writing when a connection is closed may not hear the answer.
async fn discard(mut body: Body, most: usize) {
    let mut bytes = 0;
    while bytes <= most
        && let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
    {
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
}

/// Calls `f`; if that takes long, another thread goes on with the other requests meanwhile.
fn aside<R>(long: bool, f: impl FnOnce() -> R) -> R {
    if long { tokio::task::block_in_place(f) } else { f() }
}

async fn answered(model: &Model, headers: &HeaderMap, body: Vec<Bytes>) -> Result<Response, Wrong> {
    let header = headers.get(BINARY_HEADER).map(|v| v.to_str().ok().and_then(|v| v.parse::<usize>().ok()));
    let header = match header {
        Some(None) => return Err(bad("Inference-Header-Content-Length must be a whole number")),
        Some(Some(n)) => Some(n),
        None => None,
    };
    let length = header.unwrap_or_else(|| body.iter().map(Bytes::len).sum());
    let request = aside(length > LONG, || protocol::read(body, header))?;
    let inputs = in_order(model, &request)?;
    for (name, _) in &request.outputs {
        if !model.outputs.contains(name) {
            return Err(bad(format!("there is no output `{name}`; the outputs are {}", model.outputs.join(", "))));
        }
    }
    let answer = model.batcher.ask(inputs)?.await;
    let results = answer.map_err(|_| Wrong(503, "the model was unloaded".into()))??;
    let wanted = |(i, name): (usize, &String)| {
        let asked = request.outputs.iter().find(|(n, _)| n == name);
        let binary = asked.map_or(request.binary, |(_, binary)| *binary);
        (request.outputs.is_empty() || asked.is_some()).then(|| (name.clone(), results.get(i).cloned(), binary))
    };
    let outputs = model.outputs.iter().enumerate().filter_map(wanted);
    let outputs: Vec<(String, Tensor, bool)> = outputs.filter_map(|(n, t, b)| Some((n, t?, b))).collect();
    // A number takes some ten letters.
    let numbers: usize = outputs.iter().filter(|(.., binary)| !binary).map(|(_, t, _)| t.numel()).sum();
    let write = || protocol::write(&model.name, &model.version, request.id.as_deref(), &outputs);
    let (text, binary) = aside(numbers > LONG / 10, write);
    if binary.is_empty() {
        return Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response());
    }
    let length = text.len().to_string();
    let mut all = text;
    all.extend(binary);
    let headers = [(header::CONTENT_TYPE.as_str(), "application/octet-stream"), (BINARY_HEADER, length.as_str())];
    Ok((headers, Body::from(all)).into_response())
}

/// The tensors of a request in the order of the model's inputs.
fn in_order(model: &Model, request: &Request) -> Result<Vec<Given>, Wrong> {
    let names = || model.inputs.join(", ");
    for given in &request.inputs {
        if !model.inputs.contains(&given.name) {
            return Err(bad(format!("`{}` is no input; the inputs are {}", given.name, names())));
        }
    }
    let find = |(name, known): (&String, &Vec<i64>)| {
        let mut found = request.inputs.iter().filter(|i| i.name == *name);
        match (found.next(), found.next()) {
            (Some(one), None) => {
                let shape = &one.values.shape;
                let fits = |(k, n): (&i64, &usize)| *k < 0 || *k == *n as i64;
                if shape.len() != known.len() || !known.iter().zip(shape).all(fits) {
                    return Err(bad(format!("the input `{name}` has shape {known:?}, got {shape:?}")));
                }
                Ok(one.values.clone())
            }
            (None, _) => Err(bad(format!("there is no value for the input `{name}`; the inputs are {}", names()))),
            _ => Err(bad(format!("the input `{name}` is given twice"))),
        }
    };
    model.inputs.iter().zip(&model.shapes).map(find).collect()
}
