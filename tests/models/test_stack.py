"""Modules of several runs in one."""

import torch
from torch import Tensor, nn

from graphveil.models.heads import Bilinear, LinearClassifier
from graphveil.models.stack import is_batched, load_parts, of_run, stack


def test_a_stack_computes_what_its_modules_compute() -> None:
    torch.manual_seed(0)
    heads = [LinearClassifier(3, 2) for _ in range(2)]
    z = torch.randn(2, 5, 3)
    both = stack(heads)
    assert torch.allclose(both(z), torch.stack([head(one) for head, one in zip(heads, z, strict=True)]))
    state = both.state_dict()
    for number, head in enumerate(heads):
        for name, value in of_run(state, number, 2).items():
            assert value.equal(head.state_dict()[name])
    assert stack(heads[:1]) is heads[0]
    assert of_run(heads[0].state_dict(), 0, 1).keys() == heads[0].state_dict().keys()


class Inherited(Bilinear):
    """A class that makes no promise of its own."""


class Buffered(nn.Module):
    batched = True

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))


class Dropping(nn.Module):
    batched = True

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.1)


class Wrapping(nn.Module):
    batched = True

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder


def test_a_promise_counts_if_the_class_makes_it_and_can_keep_it() -> None:
    assert is_batched(Bilinear(3))
    assert is_batched(Wrapping(Bilinear(3)))
    for module in (Inherited(3), Buffered(), Dropping(), Wrapping(Inherited(3))):
        assert not is_batched(module)


def test_weights_are_loaded_by_the_name_of_their_part() -> None:
    parts = {"utility": Bilinear(2), "adversary": LinearClassifier(2, 3)}
    state: dict[str, Tensor] = {}
    for name, module in parts.items():
        state |= {f"{name}.{key}": torch.full_like(value, 7.0) for key, value in module.state_dict().items()}
    load_parts(parts, state)
    assert all((value == 7).all() for module in parts.values() for value in module.state_dict().values())
