"""Maps: points by class, and codes as columns whose width is their number of nodes."""

import re

from graphveil.formats.audit import CodeCounts, Map, Plane
from graphveil.reporting.maps import BOTTOM, HEIGHT, SIDE, TOP, Picture, after, maps
from graphveil.reporting.svg import WIDTH

PLANE = Plane((0.0, 1.0, 2.0), (0.0, 1.0, 2.0))


def test_a_code_is_as_wide_as_its_number_of_nodes_and_split_by_class() -> None:
    codes = CodeCounts("nodes", ((3, 1), (0, 4), (1, 1)), 3, ("a", "b"))
    figure = maps("Maps", [Picture("after", codes)])
    width, height = WIDTH - SIDE - 18, HEIGHT - TOP - BOTTOM
    widths = [float(found) for found in re.findall(r'class="column"[^>]* width="([\d.]+)"', figure.panels[0])]
    assert widths == [round(width * share, 1) for share in (0.4, 0.4, 0.2)]
    first, second = re.findall(r'class="cloud s[01]" d="([^"]*)"', figure.panels[0])
    heights = [re.findall(r"v([\d.]+)", d) for d in (first, second)]
    assert heights[0] == [f"{height * share:.1f}" for share in (0.75, 0.5)], "no node of code 2 has class a"
    assert heights[1] == [f"{height * share:.1f}" for share in (0.25, 1, 0.5)]
    assert re.findall("<title>(code[^<]*)", figure.panels[0]) == [
        "code 1: 4 nodes, 75.0 % a",
        "code 2: 4 nodes, 100.0 % b",
        "code 3: 2 nodes, 50.0 % a",
    ]
    assert figure.data.rows == [["after", "a", "4", "40.0 %", "75.0 %"], ["after", "b", "6", "60.0 %", "100.0 %"]]
    assert "Each column is one code" in figure.caption
    assert "t-SNE" not in figure.caption


def test_the_last_column_may_stand_for_rare_codes() -> None:
    figure = maps("Maps", [Picture("after", CodeCounts("nodes", ((3,), (2,)), 7, ("a",)))])
    assert "6 rare codes: 2 nodes, 100.0 % a" in figure.panels[0]
    figure = maps("Maps", [Picture("after", CodeCounts("pairs", ((3,), (2,)), 2, ("a",)))])
    assert "code pair 2: 2 pairs, 100.0 % a" in figure.panels[0]


def test_codes_are_drawn_as_columns_and_other_embeddings_as_points() -> None:
    codes = CodeCounts("nodes", ((3, 1),), 1, ("a", "b"))
    continuous = Map("nodes", None, PLANE, (0, 1, 1), ("a", "b"), None)
    discrete = Map("nodes", None, PLANE, (0, 1, 1), ("a", "b"), codes)
    assert after("x", discrete).drawn is codes
    assert after("x", continuous).drawn is PLANE
    figure = maps("Maps", [after("points", continuous), after("codes", discrete)])
    assert "column" not in figure.panels[0]
    assert "column" in figure.panels[1]
    assert [name for _, name in figure.legend] == ["a", "b"]
    assert [row[2] for row in figure.data.rows] == ["1", "2", "3", "1"]
