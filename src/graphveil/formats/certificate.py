"""The certificate of a discrete release, as `run.json` and `audit.json` hold it.

The key `kind` says which of the two it is. `graphveil.codes` counts the values and writes the sentences.
"""

from graphveil.formats.record import Count, Number, Record, Share, Text

Pair = tuple[str, str]


class WorstCode(Record, frozen=True):
    """The code with the largest share of one class; of several such codes, the one with the most nodes."""

    code: Count
    likely_class: Count
    share: Share
    nodes: Count


class Stratum(Record, frozen=True):
    """The best accuracy among the nodes with one value of a column, for attackers who know that value.

    Args:
        share: of the nodes with a known class. majority: share of the largest class among these nodes.
    """

    column: str
    value: int
    nodes: Count
    share: Share
    majority: Share
    accuracy: Share


class ClassCalibration(Record, frozen=True):
    """The second statement, from the calibration nodes: the best accuracies among them, and their upper limits."""

    nodes: Count
    accuracy: Share
    accuracy_limit: Share
    balanced_limit: Share


class LinkCalibration(Record, frozen=True):
    """The second statement: the best AUC of the calibration links against all non-links, and its upper limit.

    Args:
        resampled_links: links in the resamples; fewer than the release has if these were too many.
    """

    links: Count
    auc: Share
    auc_limit: Share
    resampled_links: Count


class ClassCertificate(Record, frozen=True, kw_only=True, tag_field="kind", tag="class"):
    """What the codes of a release can reveal about a class of its nodes; information is in nats.

    Args:
        nodes: released nodes. known: those with a known class, which are counted.
        codes: codes in use. smallest_code: nodes with the rarest of them.
        majority: share of the largest class, which is the accuracy without the codes.
        accuracy: of the best rule from code to class.
        accuracy_by_chance: the mean of the same for codes unrelated to the classes; likewise `information_by_chance`.
        maximal_leakage: log of the factor by which the codes raise the probability of a correct guess (Issa, Wagner and
            Kamath, 2020).
        bits_per_node: what the code of a node can reveal about anything: log2 of the codes in use.
        confidence: of the second statement.
        calibration: None without calibration nodes.
        sentence: both statements in words.
        rows: the certificate as (name, sentence), in the order in which people should see it.
        not_covered: what it does not cover, and what is done about it: (objection, answer).
    """

    secret: str
    nodes: Count
    known: Count
    codes: Count
    classes: Count
    smallest_code: Count
    majority: Share
    accuracy: Share
    accuracy_by_chance: Share
    balanced_accuracy: Share
    balanced_guessing: Share
    information: Number
    information_by_chance: Number
    entropy: Number
    maximal_leakage: Number
    worst: WorstCode
    bits_per_node: Number
    confidence: Share
    calibration: ClassCalibration | None
    strata: tuple[Stratum, ...]
    sentence: Text
    rows: tuple[Pair, ...]
    not_covered: tuple[Pair, ...]


class LinkCertificate(Record, frozen=True, kw_only=True, tag_field="kind", tag="links"):
    """What the codes of a release can reveal about its links.

    Args:
        codes: codes in use. smallest_code: nodes with the rarest of them.
        auc: of the best score of two codes.
        auc_by_chance: the mean of the same for codes that are permuted among the nodes.
        class_matched_auc: against non-links with the class pairs of the links; None if no classes are known.
        within_class_auc: the same for attackers who know the classes of both nodes.
        information: the evidence J for a link, in nats.
        bits_per_node: what the code of a node can reveal about anything: log2 of the codes in use.
        confidence: of the second statement. calibration: None if there are too few links.
        sentence, rows, not_covered: as of `ClassCertificate`.
    """

    secret: str
    nodes: Count
    links: Count
    nonlinks: Count
    codes: Count
    smallest_code: Count
    auc: Share
    auc_by_chance: Share
    class_matched_auc: Share | None
    within_class_auc: Share | None
    information: Number
    bits_per_node: Number
    confidence: Share
    calibration: LinkCalibration | None
    sentence: Text
    rows: tuple[Pair, ...]
    not_covered: tuple[Pair, ...]


Certificate = ClassCertificate | LinkCertificate
