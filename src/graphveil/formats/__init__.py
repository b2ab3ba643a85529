"""One typed record for each JSON file that graphveil writes.

| file | record |
|---|---|
| `run.json` | `run.RunRecord`, and `run.VeilRecord` for a `Veil` that was saved alone |
| `audit.json` | `audit.AuditRecord` |
| `limits.json` | `limits.LimitsRecord` |
| `cells/*.json` of an experiment | `experiment.CellRecord` |
| `table2.json`, `figure2.json`, `sweep.json`, ... | `experiment.ExperimentRecord` |
| `table1.json` | `experiment.TableRecord` |
| `tune.json` of a search | `tune.TuneRecord` |
| the documents of `--json` | `results.py` |
| `releases.json` | `release.LedgerRecord` |
| `code_book.json` of a release | `release.CodeBookRecord` |

A record mirrors its file: a field is a key. Each record has a schema name with a version, which changes whenever a key
changes. `store.read` validates a file and refuses every other version; `store.write` writes it. Writers and readers use
the same record, so a key has one definition.
"""

from graphveil.formats.interval import Interval

__all__ = ["Interval"]
