"""What graphveil raises when the world, not the program, is at fault.

Every message is one sentence (or two) that says what came, what was expected and what to do; the command line
prints it as it is and leaves with exit code 2.
"""

import difflib
from collections.abc import Iterable


class GraphveilError(Exception):
    """Something the caller can put right: a file, a graph, an option, the network, the disk."""


class LeakError(GraphveilError):
    """A split would let an answer it is scored on into what the model or the attacker may see."""


class DivergedError(GraphveilError):
    """Training met a number that is not finite; the last good state is kept."""


LONGEST = 600
"""Characters of a sentence; names in it come from files, and may have no end."""


OUT_OF_MEMORY = (
    "there is not enough memory for this: lower --set hidden_channels and --set out_channels, give it a smaller graph"
    " or fewer --jobs, or choose another --device."
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it was memory, which libraries say in ways of their own; torch is not imported to ask."""
    if isinstance(error, MemoryError):
        return True
    said = ("DefaultCPUAllocator", "out of memory", "ALLOC_FAILED", "Storage size calculation overflowed")
    return isinstance(error, RuntimeError) and any(words in str(error) for words in said)


def shortened(sentence: str, longest: int = LONGEST) -> str:
    """A sentence, without its middle if that is endless."""
    if len(sentence) <= longest:
        return sentence
    half = longest // 2 - 3
    return f"{sentence[:half]} ... {sentence[-half:]}"


def printable(text: str) -> str:
    """Without characters that would steer a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def unknown(kind: str, given: object, known: Iterable[str]) -> GraphveilError:
    """The error for a name that is in no table: `unknown encoder 'gnc': choose one of ...`."""
    names = list(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return GraphveilError(f"unknown {kind} {str(given)!r}: choose one of {', '.join(names)}.{hint}")
