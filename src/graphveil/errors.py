"""The errors that graphveil raises for faults that are not bugs of the program.

Every message is one or two sentences that say what came, what was expected and what to do. The command line prints the
message and exits with code 2.
"""

import difflib
from collections.abc import Iterable

LONGEST = 600
"""Maximum number of characters of a message; names in it come from files and may be very long."""


class GraphveilError(Exception):
    """A fault that the caller can correct: a file, a graph, an option, the network, the disk."""

    longest = LONGEST
    """Maximum number of characters that the command line prints."""


class RefusedError(GraphveilError):
    """A release that is refused. The message lists every objection."""

    longest = 10 * LONGEST


class LeakError(GraphveilError):
    """A split would show test answers to the model or to the attacker."""


class DivergedError(GraphveilError):
    """Training produced a number that is not finite; the last good state is kept."""


OUT_OF_MEMORY = (
    "out of memory: lower --set hidden_channels and --set out_channels, use a smaller graph or fewer --jobs, or choose"
    " another --device."
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out.

    Libraries report this in different ways. Messages are compared, so that torch need not be imported.
    """
    if isinstance(error, MemoryError):
        return True
    phrases = ("DefaultCPUAllocator", "out of memory", "ALLOC_FAILED", "Storage size calculation overflowed")
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in phrases)


def shortened(sentence: str, longest: int = LONGEST) -> str:
    """Return the sentence, without its middle if it is too long."""
    if len(sentence) <= longest:
        return sentence
    half = longest // 2 - 3
    return f"{sentence[:half]} ... {sentence[-half:]}"


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an error, or the name of its type if it has no message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def printable(text: str) -> str:
    """Return the text with control characters replaced, so that it cannot control a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def unknown(kind: str, given: object, known: Iterable[str]) -> GraphveilError:
    """Return the error for a name that is not in a table: `unknown encoder 'gnc': choose one of ...`."""
    names = list(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return GraphveilError(f"unknown {kind} {str(given)!r}: choose one of {', '.join(names)}.{hint}")
