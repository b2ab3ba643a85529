"""The certificate of a discrete release, as `run.json` and `audit.json` hold it.

The key `kind` says which of the two it is. `graphveil.codes` counts the values and writes the sentences.
"""

from graphveil.formats.record import Count, Number, Record, Share, Text

Pair = tuple[str, str]


class WorstCode(Record, frozen=True):
    """The code with the largest share of one class; of several such codes, the one with the most nodes.

    Args:
        code: the code.
        likely_class: its most frequent class.
        share: the share of that class among the nodes of the code with a known class.
        nodes: the number of nodes with this code and a known class.
    """

    code: Count
    likely_class: Count
    share: Share
    nodes: Count


class Stratum(Record, frozen=True):
    """The best accuracy among the nodes with one value of a column, for attackers who know that value.

    Args:
        column: the name of the column.
        value: the value.
        nodes: the number of nodes with this value and a known class.
        share: the share of these nodes among all nodes with a known class.
        majority: the share of the largest class among these nodes.
        accuracy: the accuracy of the best rule from code to class among these nodes.
    """

    column: str
    value: int
    nodes: Count
    share: Share
    majority: Share
    accuracy: Share


class ClassCalibration(Record, frozen=True):
    """The second statement, from the calibration nodes.

    Args:
        nodes: the number of calibration nodes with a known class.
        accuracy: the accuracy of the best rule on these nodes.
        accuracy_limit: the upper limit of the accuracy on nodes like these.
        balanced_limit: the upper limit of the balanced accuracy on nodes like these.
    """

    nodes: Count
    accuracy: Share
    accuracy_limit: Share
    balanced_limit: Share


class LinkCalibration(Record, frozen=True):
    """The second statement, from the calibration links.

    Args:
        links: number of calibration links.
        auc: the AUC of the best score, for the calibration links and all non-links.
        auc_limit: the upper limit of the AUC for nodes like these.
        resampled_links: number of links in a resample; fewer than the release has if these are too many.
    """

    links: Count
    auc: Share
    auc_limit: Share
    resampled_links: Count


class ClassCertificate(Record, frozen=True, kw_only=True, tag_field="kind", tag="class"):
    """What the codes of a release can reveal about a class of its nodes; information is in nats.

    Args:
        secret: the name of the class.
        nodes: number of released nodes.
        known: number of nodes with a known class; only these are counted.
        codes: number of codes in use.
        classes: number of classes that occur.
        smallest_code: number of nodes with the rarest code.
        majority: share of the largest class, which is the chance level.
        accuracy: the accuracy of the best rule from code to class.
        accuracy_by_chance: mean accuracy of the best rule for codes unrelated to the classes.
        balanced_accuracy: the balanced accuracy of the rule that is best by this metric.
        balanced_guessing: the chance level of the balanced accuracy: one over the number of classes.
        information: the mutual information I(code; class).
        information_by_chance: mean information of codes unrelated to the classes.
        entropy: the entropy of the class.
        maximal_leakage: log of the factor by which the codes raise the probability of a correct guess (Issa, Wagner and
            Kamath, 2020).
        worst: the code with the largest share of one class.
        bits_per_node: upper bound on what the code of a node reveals about any secret: log2 of the codes in use.
        confidence: of the second statement.
        calibration: the second statement; None without calibration nodes.
        strata: the best accuracy by the values of columns.
        sentence: both statements.
        rows: the certificate as (name, sentence), in the order of display.
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

    @property
    def bound(self) -> float:
        """The higher of the values that a limit is compared with."""
        return max(self.accuracy, self.balanced_accuracy)


class LinkCertificate(Record, frozen=True, kw_only=True, tag_field="kind", tag="links"):
    """What the codes of a release can reveal about its links.

    Args:
        nodes: number of released nodes.
        links: number of links.
        nonlinks: number of non-links.
        codes: number of codes in use.
        smallest_code: number of nodes with the rarest code.
        auc: the AUC of the best score of two codes.
        auc_by_chance: mean AUC of the best score for codes that are permuted among the nodes.
        class_matched_auc: the AUC against class-matched non-links; None if no classes are known.
        within_class_auc: the class-matched AUC for attackers who know the classes of both nodes.
        information: the evidence J for a link, in nats.
        bits_per_node: upper bound on what the code of a node reveals about any secret: log2 of the codes in use.
        confidence: of the second statement.
        calibration: the second statement; None with too few calibration links.
        secret: "links".
        sentence: both statements.
        rows: the certificate as (name, sentence), in the order of display.
        not_covered: what it does not cover, and what is done about it: (objection, answer).
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

    @property
    def bound(self) -> float:
        """The higher of the values that a limit is compared with."""
        return max(self.auc, self.class_matched_auc or 0.0)


Certificate = ClassCertificate | LinkCertificate
