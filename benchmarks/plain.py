"""The same round with the layers of PyG, dense features, edge lists, and the losses and optimisers of torch.

This is a straightforward implementation of the paper. The comparison is fair: one forward pass serves encoder, head and
adversary here too, the adjacency is on the device from the start, and sizes, learning rates and heads are those of our
recipes. PyG has no hyperbolic layer, so HGCN uses the Lorentz maps as papers print them and PyG's `scatter`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import negative_sampling, scatter

from graphveil import Recipe, Split
from graphveil.models import SparseMatrix
from graphveil.training.inputs import features


class PlainGCN(nn.Module):
    """Two GCNConv layers."""

    def __init__(self, in_channels: int, recipe: Recipe) -> None:
        super().__init__()
        self.dropout = recipe.dropout
        self.first = GCNConv(in_channels, recipe.hidden_channels)
        self.second = GCNConv(recipe.hidden_channels, recipe.out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        h = F.relu(self.first(x, edge_index))
        z: Tensor = self.second(F.dropout(h, self.dropout, self.training), edge_index)
        return z


class PlainGAT(nn.Module):
    """Two GATConv layers; the first concatenates its heads, the second averages them."""

    def __init__(self, in_channels: int, recipe: Recipe) -> None:
        super().__init__()
        self.dropout = recipe.dropout
        heads, dropout = recipe.encoder_options["heads"], recipe.encoder_options["attention_dropout"]
        self.first = GATConv(in_channels, recipe.hidden_channels // heads, heads, dropout=dropout)
        self.second = GATConv(recipe.hidden_channels, recipe.out_channels, heads, concat=False, dropout=dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        h = F.elu(self.first(x, edge_index))
        z: Tensor = self.second(F.dropout(h, self.dropout, self.training), edge_index)
        return z


class PlainHGCN(nn.Module):
    """Two layers: linear map and bias in the tangent space, Lorentz centroid, back to the tangent space."""

    def __init__(self, in_channels: int, recipe: Recipe) -> None:
        super().__init__()
        self.dropout = recipe.dropout
        self.first = nn.Linear(in_channels, recipe.hidden_channels, bias=False)
        self.second = nn.Linear(recipe.hidden_channels, recipe.out_channels, bias=False)
        sizes = (recipe.hidden_channels, recipe.out_channels)
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(size)) for size in sizes])
        self.curvatures = nn.ParameterList([nn.Parameter(torch.tensor(0.5413)) for _ in sizes])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        h = F.relu(self._layer(self.first(x), 0, edge_index))
        return self._layer(self.second(F.dropout(h, self.dropout, self.training)), 1, edge_index)

    def _layer(self, tangent: Tensor, number: int, edge_index: Tensor) -> Tensor:
        c = F.softplus(self.curvatures[number])
        points = _add(_exp0(tangent, c), self.biases[number], c)
        edges, weight = gcn_norm(edge_index, num_nodes=tangent.size(0), dtype=torch.float64)
        time = (1 / c.double() + points.double().square().sum(-1, keepdim=True)).sqrt()
        messages = torch.cat([time, points.double()], dim=-1)[edges[0]] * weight[:, None]
        total = scatter(messages, edges[1], dim=0, dim_size=tangent.size(0), reduce="sum")
        length = total[:, :1].square() - total[:, 1:].square().sum(-1, keepdim=True)
        return _log0((total[:, 1:] / (c * length).sqrt()).float(), c)


def _norm(v: Tensor) -> Tensor:
    return v.square().sum(-1, keepdim=True).sqrt().clamp(min=1e-7)


def _exp0(v: Tensor, c: Tensor) -> Tensor:
    length = (c.sqrt() * _norm(v)).clamp(max=12.0)
    return torch.sinh(length) / (c.sqrt() * _norm(v)) * v


def _log0(x: Tensor, c: Tensor) -> Tensor:
    length = c.sqrt() * _norm(x)
    return torch.asinh(length) / length * x


def _add(x: Tensor, bias: Tensor, c: Tensor) -> Tensor:
    """Add a bias: transport it to x along the geodesic, and apply the exponential map there."""
    unit, shift = c.sqrt() * x, c.sqrt() * _exp0(bias, c)
    time_unit, time_shift = ((1 + v.square().sum(-1, keepdim=True)).sqrt() for v in (unit, shift))
    lift = (unit * shift).sum(-1, keepdim=True) / (1 + time_unit) + time_shift
    return (shift + lift * unit) / c.sqrt()


class PlainFermiDirac(nn.Module):
    """The logit (r - d^2) / t of the hyperbolic distance d, computed by arcosh of the Lorentz product."""

    def __init__(self) -> None:
        super().__init__()
        self.radius = nn.Parameter(torch.tensor(2.0))
        self.temperature = nn.Parameter(torch.tensor(0.5413))
        self.curvature = nn.Parameter(torch.tensor(0.5413))

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        c = F.softplus(self.curvature)
        x, y = (c.sqrt() * _exp0(z, c) for z in (z_u, z_v))
        times = [(1 + p.square().sum(-1)).sqrt() for p in (x, y)]
        inner = (times[0] * times[1] - (x * y).sum(-1)).clamp(min=1 + 1e-6)
        return (self.radius - torch.acosh(inner).square() / c) / F.softplus(self.temperature)


class PlainBilinear(nn.Module):
    """z_u' phi z_v + b."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(channels))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        phi = (self.weight + self.weight.t()) / 2
        return (z_u @ phi * z_v).sum(-1) + self.bias


ENCODERS: dict[str, type[nn.Module]] = {"gcn": PlainGCN, "gat": PlainGAT, "hgcn": PlainHGCN}


class PlainTraining:
    """Algorithm 1 (links kept, labels hidden) with the vCLUB term, a linear adversary and 20 labels of each class."""

    def __init__(self, graph: Data, split: Split, encoder: str, recipe: Recipe, device: torch.device) -> None:
        x = features(graph, [], recipe.scaling, device)
        self.x = x.to_dense() if isinstance(x, SparseMatrix) else x
        self.edge_index = split.message_edge_index.to(device)
        self.links = split.train_links.to(device)
        self.nodes, self.y = split.train_nodes.to(device), graph.y[split.train_nodes].to(device)
        self.classes = int(graph.y.max()) + 1
        self.prior = (torch.bincount(self.y, minlength=self.classes) / self.y.numel()).to(device)
        self.encoder = ENCODERS[encoder](self.x.size(1), recipe).to(device)
        head = PlainBilinear(recipe.out_channels) if recipe.head == "bilinear" else PlainFermiDirac()
        self.predictor = head.to(device)
        self.adversary = nn.Linear(recipe.out_channels, self.classes).to(device)
        self.optimizers = [
            torch.optim.Adam(self.encoder.parameters(), lr=recipe.lr_encoder, weight_decay=recipe.weight_decay),
            torch.optim.Adam(self.predictor.parameters(), lr=recipe.lr_utility),
            torch.optim.Adam(self.adversary.parameters(), lr=recipe.lr_adversary),
        ]
        self.clip = recipe.clip

    def round(self) -> None:
        """One round at lambda = 0.5."""
        num_nodes = self.x.size(0)
        nonlinks = negative_sampling(self.edge_index, num_nodes, self.links.size(1))
        pairs = torch.cat([self.links, nonlinks], dim=1)
        device = self.x.device
        ones, zeros = torch.ones(self.links.size(1), device=device), torch.zeros(nonlinks.size(1), device=device)
        target = torch.cat([ones, zeros])
        z = self.encoder(self.x, self.edge_index)

        loss = F.cross_entropy(self.adversary(z.detach()[self.nodes]), self.y)
        self._step(2, loss)

        logit = self.predictor(z[pairs[0]], z[pairs[1]])
        utility = F.binary_cross_entropy_with_logits(logit, target)
        log_q = F.log_softmax(self.adversary(z[self.nodes]), dim=-1)
        secret = log_q.gather(1, self.y[:, None]).mean() - (log_q @ self.prior).mean()
        self.optimizers[2].zero_grad()
        self._step(0, 0.5 * utility + 0.5 * secret, also=1)

    def _step(self, which: int, loss: Tensor, also: int | None = None) -> None:
        chosen = [self.optimizers[i] for i in (which, also) if i is not None]
        for optimizer in chosen:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in chosen:
            for group in optimizer.param_groups:
                nn.utils.clip_grad_norm_(group["params"], self.clip)
            optimizer.step()
