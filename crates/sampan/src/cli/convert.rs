//! `sampan convert`.

use super::{say, weights};
use clap::Args;
use sampan_align::convert::{self, Convention, Converted, Mapping, Structure};
use sampan_core::{DType, Error, Result};
use sampan_data::vision::models;
use sampan_graph::{Spec, onnx, paddle, trace};
use sampan_io::Format;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct Convert {
    /// The weights: .pth, .pt, .pdparams, .pdiparams, .safetensors, .npz or .onnx; or a network: .pdmodel, .json or .onnx; or the
    /// folder of a run of `sampan train`, whose network becomes a .pdmodel or .json to be served
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// Where they go; the end of the name is the format
    #[arg(long, value_name = "TARGET")]
    to: PathBuf,
    /// What they are for: a network of the model zoo (`sampan summary list` names them), or a file of its weights
    #[arg(long, value_name = "MODEL|FILE")]
    model: Option<String>,
    /// The network of the zoo that the source was saved from, where its file has no names
    #[arg(long, value_name = "MODEL")]
    source_model: Option<String>,
    /// Number of classes of the networks, if it is not 1000
    #[arg(long, value_name = "N")]
    num_classes: Option<i64>,
    /// Lines that correct the pairs: `SOURCE = TARGET`, `SOURCE = -`, `- = TARGET`, `transpose KEY`, `plain KEY`
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// The entry of a checkpoint that holds the weights
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// How the source's matrices lie, where neither format nor names tell
    #[arg(long, value_name = "torch|paddle", value_parser = convention)]
    from: Option<Convention>,
    /// How the target's matrices are to lie, where neither format nor model tells
    #[arg(long = "as", value_name = "torch|paddle", value_parser = convention)]
    lie_as: Option<Convention>,
    /// The version of ONNX's operators, where a network becomes an .onnx file
    #[arg(long, value_name = "N", default_value_t = onnx::Options::default().opset)]
    opset: i64,
    /// Allow keys without a partner
    #[arg(long)]
    partial: bool,
    /// Write the account of every key to a file as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the last line of the account only
    #[arg(long, short)]
    quiet: bool,
}

fn convention(name: &str) -> std::result::Result<Convention, String> {
    Convention::from_name(name).ok_or_else(|| "known are torch and paddle".into())
}

impl Convert {
    fn zoo(&self, name: &str) -> Result<Option<Structure>> {
        let Some(known) = models::find(name) else { return Ok(None) };
        let arguments = self.num_classes.map(|n| ("num_classes", n.into())).into_iter().collect();
        Ok(Some(Structure::of_layer(name, &known.build_with(arguments)?)))
    }

    fn needed(&self, name: &str) -> Result<Structure> {
        self.zoo(name)?.ok_or_else(|| {
            Error::invalid(format!("there is neither a network nor a file called {name:?}"))
                .hint("`sampan summary list` names the networks")
        })
    }

    /// The file whose graph or weights the target is modelled on.
    fn template(&self) -> Option<&Path> {
        self.model.as_deref().map(Path::new).filter(|path| path.is_file())
    }

    fn convert(&self) -> Result<Converted> {
        let source_model = self.source_model.as_deref().map(|name| self.needed(name)).transpose()?;
        let source = convert::read(&self.source, self.key.as_deref(), self.from, source_model.as_ref())?;
        let written = self.lie_as.or(convert::default_convention(Format::from_path(&self.to)));
        let mut target = match (&self.model, self.template()) {
            (Some(_), Some(path)) => convert::read(path, None, self.lie_as, None)?,
            (Some(name), None) => self.needed(name)?,
            (None, _) => convert::like_itself(&source, written),
        };
        if target.convention.is_none() {
            target.convention = written;
        }
        let text = match &self.map {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|e| Error::invalid(format!("the mapping {} cannot be read: {e}", path.display())))?,
            None => String::new(),
        };
        let converted = convert::convert(&source, &target, &Mapping::parse(&text)?, self.partial)?;
        let lies = if self.template().is_some() { None } else { written };
        let (state, target) = convert::in_convention(&converted.state, &target, lies)?;
        convert::write(&self.to, &state, &target, self.template())?;
        Ok(converted)
    }

    /// Is a whole network asked for, graph and all?
    fn is_network(&self) -> bool {
        let network =
            |path: &Path| matches!(path.extension().and_then(|e| e.to_str()), Some("pdmodel" | "json" | "onnx"));
        network(&self.to) && network(&self.source) && self.model.is_none()
    }

    /// Writes a network in another format.
    fn network(&self) -> Result<ExitCode> {
        let graph = sampan_graph::load(&self.source)?;
        match self.to.extension().is_some_and(|e| e == "onnx") {
            true => onnx::save(&graph, &self.to, onnx::Options { opset: self.opset, ..onnx::Options::default() })?,
            false => paddle::save(&graph, self.to.with_extension(""), &[])?,
        }
        let (calls, weights) = (graph.calls.len(), graph.weights.iter().filter(|w| w.shared).count());
        say(format!("{}: a network of {calls} calls and {weights} parameters", self.to.display()))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the network that `sampan train` trained in a folder as one that runs without this program.
    fn write_network(&self) -> Result<()> {
        let network = weights::load(&self.source)?.network().clone();
        network.eval();
        let image = Spec::new([None, Some(1), Some(28), Some(28)], DType::Float32).named("image");
        let graph = trace(|x| network.call_all(x), &[image])?;
        paddle::save(&graph, self.to.with_extension(""), &[])?;
        let to = self.to.with_extension("");
        say(format!("{} is now {}.pdmodel, .json and .pdiparams", self.source.display(), to.display()))
    }

    pub fn run(self) -> Result<ExitCode> {
        if self.is_network() {
            return self.network();
        }
        if self.source.is_dir() && self.to.extension().is_some_and(|e| e == "pdmodel" || e == "json") {
            self.write_network().map_err(|e| e.in_op("convert"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let Converted { report, .. } = self.convert().map_err(|e| e.in_op("convert"))?;
        if let Some(path) = &self.report {
            sampan_io::atomic::write(path, report.to_json().as_bytes())?;
        }
        say(if self.quiet { report.summary() } else { report.to_string() })?;
        Ok(ExitCode::SUCCESS)
    }
}
