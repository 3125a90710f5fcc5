//! What layers and functions of the sides are to each other: one word for `nn.Conv2d`, `F.conv2d`, `nn.Conv2D` and ONNX's
//! `Conv`.

/// Words that mean the same thing: first the kind, then what the sides call it, in small letters without underscores.
const SYNONYMS: &[(&str, &str)] = &[
    ("conv1d", ""),
    ("conv2d", "conv"),
    ("conv3d", ""),
    ("conv1d_transpose", "convtranspose1d"),
    ("conv2d_transpose", "convtranspose2d convtranspose"),
    ("conv3d_transpose", "convtranspose3d"),
    ("linear", "gemm addmm nondynamicallyquantizablelinear"),
    ("bilinear", ""),
    ("embedding", ""),
    ("batch_norm", "batchnorm1d batchnorm2d batchnorm3d batchnormalization syncbatchnorm nativebatchnorm"),
    ("layer_norm", "layernormalization nativelayernorm"),
    ("group_norm", "groupnormalization nativegroupnorm"),
    ("instance_norm", "instancenorm1d instancenorm2d instancenorm3d instancenormalization"),
    ("rms_norm", "rmsnormalization"),
    ("local_response_norm", "localresponsenorm lrn"),
    ("max_pool1d", ""),
    ("max_pool2d", "maxpool boxedmaxpool2d maxpool2dwithindices"),
    ("max_pool3d", ""),
    ("avg_pool1d", ""),
    ("avg_pool2d", "averagepool"),
    ("avg_pool3d", ""),
    ("adaptive_avg_pool1d", ""),
    ("adaptive_avg_pool2d", "globalaveragepool"),
    ("adaptive_avg_pool3d", ""),
    ("adaptive_max_pool1d", ""),
    ("adaptive_max_pool2d", "globalmaxpool"),
    ("dropout", "featuredropout alphadropout featurealphadropout"),
    ("dropout2d", ""),
    ("drop_path", "stochasticdepth droppath"),
    ("relu", ""),
    ("relu6", ""),
    ("leaky_relu", ""),
    ("prelu", ""),
    ("elu", ""),
    ("celu", ""),
    ("selu", ""),
    ("gelu", ""),
    ("silu", "swish"),
    ("mish", ""),
    ("hardswish", ""),
    ("hardsigmoid", ""),
    ("hardtanh", ""),
    ("sigmoid", ""),
    ("log_sigmoid", ""),
    ("tanh", ""),
    ("softplus", ""),
    ("softsign", ""),
    ("softmax", ""),
    ("log_softmax", ""),
    ("clamp", "clip"),
    ("lstm", ""),
    ("gru", ""),
    ("rnn", "simplernn"),
    ("lstm_cell", ""),
    ("gru_cell", ""),
    ("mha", "multiheadattention"),
    ("attention", "scaleddotproductattention flashattention"),
    ("upsample", "interpolate resize upsamplingnearest2d upsamplingbilinear2d upsamplenearest2d"),
    ("pixel_shuffle", "depthtospace"),
    ("pad", "zeropad2d pad1d pad2d pad3d constantpad2d reflectionpad2d replicationpad2d"),
    ("cross_entropy", "crossentropyloss softmaxwithcrossentropy softmaxcrossentropyloss"),
    ("nll_loss", "nllloss"),
    ("mse_loss", "mseloss"),
    ("l1_loss", "l1loss"),
    ("smooth_l1_loss", "smoothl1loss"),
    ("bce_loss", "bceloss binarycrossentropy"),
    ("bce_with_logits", "bcewithlogitsloss binarycrossentropywithlogits"),
    ("kl_div", "kldivloss"),
    ("matmul", "bmm mm rmatmul"),
    ("einsum", ""),
    ("add", "radd iadd"),
    ("sub", "subtract rsub isub"),
    ("mul", "multiply rmul imul scale"),
    ("div", "divide truediv rtruediv idiv itruediv"),
    ("pow", "rpow square"),
    ("sqrt", ""),
    ("rsqrt", ""),
    ("exp", ""),
    ("log", ""),
    ("abs", ""),
    ("neg", ""),
    ("sin", ""),
    ("cos", ""),
    ("mean", "reducemean"),
    ("sum", "reducesum"),
    ("max", "reducemax amax"),
    ("min", "reducemin amin"),
    ("var", ""),
    ("std", ""),
    ("norm", "vectornorm"),
    ("masked_fill", ""),
    ("where", ""),
    ("tril", ""),
    ("triu", ""),
    ("cumsum", ""),
    ("gather", "takealongaxis"),
    ("index_select", ""),
    ("argmax", ""),
    ("topk", ""),
    ("one_hot", "onehot"),
    // What only moves or renames values.
    ("reshape", "view viewas reshapeas unflatten"),
    ("flatten", "ravel"),
    ("transpose", "permute swapaxes swapdims t mt movedim moveaxis"),
    ("unsqueeze", ""),
    ("squeeze", ""),
    ("expand", "broadcastto expandas tile repeat"),
    ("contiguous", ""),
    ("clone", "assign copy"),
    ("detach", ""),
    ("getitem", "slice stridedslice select narrow tensorgetitem setitem index"),
    ("split", "chunk unbind unstack tensorsplit"),
    ("cat", "concat concatenate"),
    ("stack", ""),
    ("cast", "to float half double astype type bfloat16 long int"),
    ("roll", ""),
    ("flip", ""),
    ("identity", ""),
    ("sequential", ""),
];

const ACTIVATIONS: &str = " relu relu6 leaky_relu prelu elu celu selu gelu silu mish hardswish hardsigmoid hardtanh sigmoid \
    log_sigmoid tanh softplus softsign clamp ";
const POOLS: &str = " max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d \
    adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d ";
const NORMS: &str = " batch_norm layer_norm group_norm instance_norm rms_norm local_response_norm ";
const ARITHMETIC: &str = " add sub mul div ";
const GLUE: &str = " reshape flatten transpose unsqueeze squeeze expand contiguous clone detach getitem split cat stack cast roll \
    flip identity sequential pad ";
const LOSSES: &str = " cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss bce_loss bce_with_logits kl_div ";

fn among(list: &str, kind: &str) -> bool {
    list.contains(&format!(" {kind} "))
}

/// The kind of a layer's class or of a function: `conv2d` for `Conv2D`; a class that nobody knows is its own kind.
pub fn kind(op: &str) -> String {
    let plain: String = op.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>().to_lowercase();
    let is = |known: &str| known.replace('_', "") == plain;
    let found =
        SYNONYMS.iter().find(|(kind, others)| is(kind) || others.split(' ').any(|o| !o.is_empty() && o == plain));
    found.map_or(plain.clone(), |(kind, _)| kind.to_string())
}

/// Does it only move or rename values?
pub fn is_glue(kind: &str) -> bool {
    among(GLUE, kind)
}

/// An elementwise nonlinearity?
pub fn is_activation(kind: &str) -> bool {
    among(ACTIVATIONS, kind)
}

/// A sum, difference, product or quotient?
pub fn is_arithmetic(kind: &str) -> bool {
    among(ARITHMETIC, kind)
}

/// Two ways to write a factor, or a summand?
pub fn same_arithmetic(a: &str, b: &str) -> bool {
    [" mul div ", " add sub "].iter().any(|l| among(l, a) && among(l, b))
}

/// A loss?
pub fn is_loss(kind: &str) -> bool {
    among(LOSSES, kind)
}

/// Do two kinds play the same part in a network, so that one may stand where the other should?
pub fn related(a: &str, b: &str) -> bool {
    let lists = [
        ACTIVATIONS,
        POOLS,
        NORMS,
        ARITHMETIC,
        LOSSES,
        " lstm gru rnn ",
        " mean sum max min ",
        " softmax log_softmax sigmoid ",
    ];
    a == b
        || lists.iter().any(|l| among(l, a) && among(l, b))
        || (a.starts_with("conv") && b.starts_with("conv"))
        || (a.starts_with("dropout") && b.starts_with("drop"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_use_other_words_for_the_same() {
        for (words, want) in [
            (&["Conv2d", "Conv2D", "conv2d", "Conv"][..], "conv2d"),
            (&["ConvTranspose2d", "Conv2DTranspose", "conv2d_transpose"], "conv2d_transpose"),
            (&["BatchNorm2d", "BatchNorm2D", "batch_norm"], "batch_norm"),
            (&["relu", "ReLU", "relu_", "Relu"], "relu"),
            (&["__add__", "add", "add_", "__radd__"], "add"),
            (&["MultiheadAttention", "MultiHeadAttention"], "mha"),
            (&["AdaptiveAvgPool2d", "AdaptiveAvgPool2D"], "adaptive_avg_pool2d"),
        ] {
            words.iter().for_each(|w| assert_eq!(kind(w), want, "{w}"));
        }
        assert!(related("relu", "hardswish") && !related("relu", "conv2d"));
    }
}
