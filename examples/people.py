"""Write two synthetic tables for docs/your-own-graph.md: the people of a company, and who writes to whom.

python examples/people.py people        writes people/people.csv and people/links.csv
python examples/people.py newer 50      the same company later: fifty more people, one more city, and other links
"""

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

PEOPLE = 1000
COLUMNS = ("id", "age", "city", "team", "sport", "salutation", "gender")
CITIES = ("Bergen", "Graz", "Leeds", "Porto", "Turku")
TEAMS = ("data", "design", "legal", "people", "platform", "research", "sales", "support")
SPORTS = ("climbing", "football", "none", "running", "yoga")
LIKED = {"man": (1, 6, 1, 1, 1), "woman": (1, 1, 1, 1, 6)}
SALUTATIONS = {"man": "Mr", "woman": "Ms"}

Person = dict[str, str]


def write_people(folder: Path, newcomers: int = 0) -> None:
    """Write `people.csv`, with some missing ages and genders, and `links.csv`.

    Args:
        folder: the folder to write to.
        newcomers: the number of additional people.
    """
    first, later = np.random.default_rng(0), np.random.default_rng(1 + newcomers)
    everybody = [person(number, CITIES, first) for number in range(PEOPLE)]
    everybody += [person(PEOPLE + number, (*CITIES, "Ghent"), later) for number in range(newcomers)]
    links = draw_links(everybody, later)
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "people.csv", COLUMNS, [forget(one, first) for one in everybody])
    write_csv(folder / "links.csv", ("from", "to"), links)


def person(number: int, cities: Sequence[str], chance: np.random.Generator) -> Person:
    """A person without missing values; the gender correlates with the sport and is given by the salutation."""
    gender = str(chance.choice(["man", "woman"]))
    liked = np.array(LIKED[gender])
    return {
        "id": f"p-{number:04}",
        "age": str(chance.integers(20, 65)),
        "city": str(chance.choice(cities)),
        "team": str(chance.choice(TEAMS)),
        "sport": str(chance.choice(SPORTS, p=liked / liked.sum())),
        "salutation": SALUTATIONS[gender] if chance.random() < 0.97 else "Dr",
        "gender": gender,
    }


def forget(one: Person, chance: np.random.Generator) -> list[str]:
    """A row of the table, in which age or gender may be missing."""
    age, gender = chance.random(2) < (0.05, 0.08)
    return list((one | ({"age": ""} if age else {}) | ({"gender": ""} if gender else {})).values())


def draw_links(everybody: Sequence[Person], chance: np.random.Generator) -> list[tuple[str, str]]:
    """About six links of each person; a common team, city or gender makes a link more likely."""
    links = []
    shared = {name: np.array([one[name] for one in everybody]) for name in ("team", "city", "gender")}
    for number, one in enumerate(everybody):
        alike = np.ones(len(everybody))
        for name, times in (("team", 16), ("city", 8), ("gender", 2)):
            alike[shared[name] == one[name]] *= times
        alike[number] = 0
        others = chance.choice(len(everybody), size=2 + chance.poisson(4), replace=False, p=alike / alike.sum())
        links += [(one["id"], everybody[other]["id"]) for other in others]
    return links


def write_csv(file: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table with a header."""
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([header, *rows])


if __name__ == "__main__":
    write_people(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
