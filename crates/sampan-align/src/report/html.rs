//! The report as one page that needs nothing else.

use super::plots::{Line, escape, plot};
use crate::diff::Diff;
use crate::{Finding, Report, Row};

const STYLE: &str = "
:root { --ink: #1d2330; --soft: #667085; --line: #e4e7ec; --back: #fff; --card: #f8f9fb; --good: #17803d; --bad: #c0232c;
  --warn: #a15c07; --a: #2463c9; --b: #d9480f; --c: #7a3ec8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #2c3340; --back: #12161d;
  --card: #1a202a; --good: #4cc27a; --bad: #ff6b72; --warn: #f0a94b; --a: #6ea8ff; --b: #ff9352; --c: #b78cff; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 0 auto; max-width: 1040px;
  padding: 28px 20px 60px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 34px 0 10px; }
.sides { color: var(--soft); margin-bottom: 18px; }
.verdict { display: inline-block; padding: 3px 12px; border-radius: 999px; font-weight: 600; color: #fff; }
.good { background: var(--good); } .bad { background: var(--bad); } .warn { background: var(--warn); }
.checks { display: flex; flex-wrap: wrap; gap: 8px; margin: 16px 0; }
.check { border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px; background: var(--card); }
.check b { display: block; } .check small { color: var(--soft); }
.check.ok b::before { content: '✓ '; color: var(--good); } .check.no b::before { content: '✗ '; color: var(--bad); }
.finding { border: 1px solid var(--line); border-left: 4px solid var(--bad); border-radius: 8px; padding: 12px 16px; margin: 10px 0;
  background: var(--card); }
.finding.silent { border-left-color: var(--warn); }
.finding h3 { font-size: 15px; margin: 0 0 6px; } .finding ul { margin: 6px 0 0; padding-left: 20px; color: var(--soft); }
.tag { display: inline-block; font-size: 12px; border: 1px solid var(--line); border-radius: 999px; padding: 1px 9px; margin-right: 6px;
  color: var(--soft); background: var(--back); }
code, pre, td { font-family: ui-monospace, monospace; font-size: 12.5px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-size: 12.5px; color: var(--soft); font-weight: 600; }
th, td { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
tr.fault td { color: var(--bad); font-weight: 600; } tr.inherited td { color: var(--warn); }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px; overflow-x: auto; }
svg { width: 100%; height: auto; margin: 6px 0 14px; } svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg .title { fill: var(--ink); font-weight: 600; font-size: 13px; } svg .grid { stroke: var(--line); }
svg .mark { stroke: var(--bad); stroke-dasharray: 4 3; } svg path { fill: none; stroke-width: 1.6; }
svg path.a { stroke: var(--a); } svg path.b { stroke: var(--b); } svg path.c { stroke: var(--c); }
svg circle.a, svg text.a { fill: var(--a); } svg circle.b, svg text.b { fill: var(--b); } svg circle.c, svg text.c { fill: var(--c); }
table.detail td { white-space: normal; vertical-align: top; min-width: 90px; }
summary { cursor: pointer; color: var(--soft); margin: 8px 0; }
";

fn finding(i: usize, f: &Finding) -> String {
    let mut html = format!(
        "<section class=\"finding{}\"><h3>{}. {}</h3>",
        if f.visible { "" } else { " silent" },
        i + 1,
        escape(&f.sentence)
    );
    let mut tags = vec![f.check.clone(), f.place.clone()];
    if !f.cause.is_empty() {
        tags.push(format!("{} · {}", f.cause, f.certainty));
    }
    tags.push(format!("reference: {}", f.reference));
    tags.push(format!("candidate: {}", f.candidate));
    html += &tags.iter().map(|t| format!("<span class=\"tag\">{}</span>", escape(t))).collect::<String>();
    if !f.evidence.is_empty() {
        let items: String = f.evidence.iter().map(|e| format!("<li>{}</li>", escape(e))).collect();
        html += &format!("<ul>{items}</ul>");
    }
    if !f.detail.is_empty() {
        let cell = |c: &String| format!("<td>{}</td>", escape(c));
        let rows: String =
            f.detail.iter().map(|r| format!("<tr>{}</tr>", r.iter().map(cell).collect::<String>())).collect();
        html += &format!(
            "<details><summary>settings, inputs and outputs</summary><div class=\"scroll\"><table class=\"detail\">\
             <tr><th></th><th>reference</th><th>candidate</th></tr>{rows}</table></div></details>"
        );
    }
    html + "</section>"
}

fn number(d: &Option<Diff>) -> String {
    d.as_ref().map_or(String::new(), |d| {
        if d.relative.is_finite() && (d.remark.is_empty() || d.remark.starts_with("axes")) {
            format!("{:.2e}", d.relative)
        } else {
            escape(&d.remark)
        }
    })
}

fn row(r: &Row) -> String {
    let class = if r.verdict == "ok" { String::new() } else { format!(" class=\"{}\"", r.verdict) };
    let cells = [
        escape(&r.reference),
        escape(&r.candidate),
        escape(&r.kind),
        format!("{:?}", r.shape),
        number(&r.natural),
        number(&r.forced),
        number(&r.gradient),
        number(&r.local),
        r.verdict.clone(),
    ];
    format!("<tr{class}>{}</tr>", cells.map(|c| format!("<td>{c}</td>")).concat())
}

impl Report {
    /// The report as a page with plots, in one file without scripts.
    pub fn html(&self) -> String {
        let state = match (self.ok, self.findings.iter().any(|f| f.visible)) {
            (true, _) => "good",
            (_, false) if self.checks.iter().all(|c| c.ok) => "warn",
            _ => "bad",
        };
        let mut page = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>Alignment: {}</title><style>{STYLE}</style></head><body>",
            escape(&self.verdict())
        );
        page += &format!(
            "<h1>Alignment <span class=\"verdict {state}\">{}</span></h1><div class=\"sides\">reference {} · candidate {}</div>",
            escape(&self.verdict()),
            escape(&self.reference),
            escape(&self.candidate)
        );
        page += "<div class=\"checks\">";
        for c in &self.checks {
            let worst = c.rows.iter().map(|r| r.diff.relative).fold(0.0, f64::max);
            page += &format!(
                "<div class=\"check {}\"><b>{}</b><small>{} tensors, worst {worst:.1e}</small></div>",
                if c.ok { "ok" } else { "no" },
                c.check.name(),
                c.rows.len()
            );
        }
        page += "</div>";
        for (what, first) in [("forward", &self.first_forward), ("backward", &self.first_backward)] {
            if let Some(name) = first {
                page += &format!("<p>The first layer that diverges {what} is <code>{}</code>.</p>", escape(name));
            }
        }
        if !self.findings.is_empty() {
            page += "<h2>What differs</h2>";
            page += &self.findings.iter().enumerate().map(|(i, f)| finding(i, f)).collect::<String>();
        }
        page += &self.pictures();
        if !self.rows.is_empty() {
            let rows: String = self.rows.iter().map(row).collect();
            page += &format!(
                "<h2>Call by call</h2><p class=\"sides\">Greatest difference relative to the greatest value: as the models ran, and \
                 with each call of the candidate on the reference's input; the same for gradients.</p><div class=\"scroll\"><table><tr>\
                 <th>reference</th><th>candidate</th><th>kind</th><th>output</th><th>as run</th><th>forced</th><th>gradient</th>\
                 <th>its own</th><th></th></tr>{rows}</table></div>"
            );
        }
        if !self.notes.is_empty() {
            let items: String = self.notes.iter().map(|n| format!("<li>{}</li>", escape(n))).collect();
            page += &format!("<h2>Notes</h2><ul>{items}</ul>");
        }
        if !self.pairs.is_empty() {
            page += &format!(
                "<details><summary>Pairs of layers (correct them with lines such as <code>layer = layer</code>)</summary><pre>{}</pre></details>",
                escape(&self.pairs)
            );
        }
        page + "</body></html>\n"
    }

    fn pictures(&self) -> String {
        let of = |get: fn(&Row) -> &Option<Diff>| -> Vec<Option<f64>> {
            self.rows.iter().map(|r| get(r).as_ref().map(|d| d.relative)).collect()
        };
        let names: Vec<String> = self.rows.iter().map(|r| r.candidate.clone()).collect();
        let marks: Vec<usize> =
            self.rows.iter().enumerate().filter(|(_, r)| r.verdict == "fault").map(|(i, _)| i).collect();
        let some = |v: &[Option<f64>]| v.iter().any(Option::is_some);
        let mut found = String::new();
        let (natural, forced) = (of(|r| &r.natural), of(|r| &r.forced));
        if some(&natural) {
            let lines = [
                Line { name: "as run", class: "a", values: natural },
                Line { name: "forced", class: "b", values: forced },
            ];
            found += &plot("Difference of outputs, call by call", &lines, true, &marks, &names, "order of execution →");
        }
        let (gradient, local) = (of(|r| &r.gradient), of(|r| &r.local));
        if some(&gradient) || some(&local) {
            let lines = [
                Line { name: "as run", class: "a", values: gradient },
                Line { name: "its own", class: "c", values: local },
            ];
            found += &plot("Difference of gradients, call by call", &lines, true, &[], &names, "order of execution →");
        }
        for (title, [x, y]) in [("Loss", &self.losses), ("Learning rate", &self.rates)] {
            if x.len() > 1 || y.len() > 1 {
                let values = |v: &[f64]| v.iter().map(|x| Some(*x)).collect::<Vec<_>>();
                let lines = [
                    Line { name: "reference", class: "a", values: values(x) },
                    Line { name: "candidate", class: "b", values: values(y) },
                ];
                let marks: Vec<usize> = if title == "Loss" { self.parts_at.into_iter().collect() } else { Vec::new() };
                found += &plot(title, &lines, false, &marks, &[], "step");
            }
        }
        if found.is_empty() { found } else { format!("<h2>Where</h2>{found}") }
    }
}
