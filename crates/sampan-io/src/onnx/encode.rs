//! A model as the bytes of a `ModelProto`.

use super::model::{Attr, Extent, Model, Net, Node, ValueInfo};
use super::tensor;
use crate::fault::{Fault, Parse};
use crate::proto::Message;

pub fn encode(model: &Model, beside: Option<&mut tensor::Written>) -> Parse<Message> {
    let message = Message::new().int(1, model.ir_version).text(2, &model.producer);
    let graph = encode_net(&model.graph, beside)?;
    let with =
        |m: Message, (domain, version): &(String, i64)| m.message(8, &Message::new().text(1, domain).int(2, *version));
    Ok(model.opsets.iter().fold(message.message(7, &graph), with))
}

fn encode_net(net: &Net, mut beside: Option<&mut tensor::Written>) -> Parse<Message> {
    let mut message = Message::new();
    for node in &net.nodes {
        message = message.message(1, &encode_node(node)?);
    }
    message = message.text(2, &net.name);
    for (name, tensor) in &net.initialisers {
        let written = match &mut beside {
            Some(beside) => tensor::write_beside(name, tensor, beside)?,
            None => tensor::write(name, tensor)?,
        };
        message = message.message(5, &written);
    }
    let info = |info: &ValueInfo| {
        let mut kind = Message::new().int(1, info.dtype.map_or(0, tensor::code_of) as i64);
        if let Some(dims) = &info.dims {
            let dim = |m: Message, extent: &Extent| {
                m.message(
                    1,
                    &match extent {
                        Extent::Fixed(n) => Message::new().int(1, *n as i64),
                        Extent::Named(name) => Message::new().text(2, name),
                    },
                )
            };
            kind = kind.message(2, &dims.iter().fold(Message::new(), dim));
        }
        Message::new().text(1, &info.name).message(2, &Message::new().message(1, &kind))
    };
    message = net.inputs.iter().fold(message, |m, i| m.message(11, &info(i)));
    Ok(net.outputs.iter().fold(message, |m, i| m.message(12, &info(i))))
}

fn encode_node(node: &Node) -> Parse<Message> {
    let message = node.inputs.iter().fold(Message::new(), |m, n| m.text(1, n));
    let mut message = node.outputs.iter().fold(message, |m, n| m.text(2, n)).text(3, &node.name).text(4, &node.op);
    for (name, attr) in &node.attrs {
        let m = Message::new().text(1, name);
        let (m, kind) = match attr {
            Attr::Float(f) => (m.float(2, *f), 1),
            Attr::Int(i) => (m.int(3, *i), 2),
            Attr::Text(t) => (m.bytes(4, t), 3),
            Attr::Tensor(t) => (m.message(5, &tensor::write("", t)?), 4),
            Attr::Graph(g) => (m.message(6, &encode_net(g, None)?), 5),
            Attr::Floats(all) => (all.iter().fold(m, |m, f| m.float(7, *f)), 6),
            Attr::Ints(all) => (all.iter().fold(m, |m, i| m.int(8, *i)), 7),
            Attr::Texts(all) => (all.iter().fold(m, |m, t| m.bytes(9, t)), 8),
            Attr::Caller(_) | Attr::Unknown => return Err(Fault::unsupported(format!("the attribute {name}"))),
        };
        message = message.message(5, &m.int(20, kind));
    }
    Ok(message.text(7, &node.domain))
}
