"""The page in a real browser: it asks nothing of anybody, and can be read on a phone, in the dark and on paper."""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from graphveil.reporting import report
from tests.reporting import made

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="there is no chromium or no chromedriver here")

PAGES = ("audit", "experiments", "missing")
CONTRAST = """
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const light = text => {
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const [r, g, b] = rgb(text).slice(0, 3).map(v => linear(v / 255));
  return .2126 * r + .7152 * g + .0722 * b;
};
const behind = e => {
  for (; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor, alpha = rgb(colour)[3];
    if (alpha === undefined || alpha > 0) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const words = 'p, li, h1, h2, dt, dd span, td, th, caption small, summary, a, svg text';
return [...document.querySelectorAll(words)].map(e => {
  const style = getComputedStyle(e), ink = light(e.closest('svg') ? style.fill : style.color), paper = light(behind(e));
  return [(Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05), e.tagName, e.textContent.slice(0, 40)];
}).sort((a, b) => a[0] - b[0])[0];
"""
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOCUSED = """
const e = document.activeElement, style = getComputedStyle(e);
const link = e.getAttribute('href') || '', left = e.getBoundingClientRect().left;
return [e.tagName, e.className, link, parseFloat(style.outlineWidth), left];
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of an audit and one of experiments."""
    folder = tmp_path_factory.mktemp("pages")
    long = made.audit()
    long["attacks"][0]["attack"] = "a_name_without_any_space_" * 8
    long["notes"].append("x" * 300)
    report(made.write(folder / "audit.json", long), folder / "audit.html")
    report(made.experiments(folder / "experiments"), folder / "experiments.html")
    whole = made.experiment("figure2", [0.1, 0.5, 0.9], ["club", "codes"])
    for row in whole["rows"][:14]:
        row.update(dict.fromkeys(("paper", "floor", "finer", "history", "map")))
    made.write(folder / "missing" / "figure2.json", whole)
    report(folder / "missing", folder / "missing.html")
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1280,900"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(params=PAGES)
def opened(request: pytest.FixtureRequest, browser: Any, pages: dict[str, Path]) -> Any:
    """The browser with a report in it, at the width of a desk."""
    look(browser, 1280, "light")
    browser.get_log("performance")
    browser.get(pages[request.param].as_uri())
    return browser


def test_it_renders_and_asks_nothing_of_anybody(opened: Any) -> None:
    drawn = "return [...document.querySelectorAll('svg[role=img]')].every(e => e.closest('details:not([open])')"
    assert opened.execute_script(f"{drawn} || e.getBoundingClientRect().height > 100)")
    assert opened.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    requested = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert opened.current_url in requested
    assert {url for url in requested if not url.startswith("data:")} == {opened.current_url}


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_runs_out_of_the_window(opened: Any, width: int) -> None:
    look(opened, width, "light")
    opened.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert opened.execute_script(OVERFLOW) == 0
    assert opened.execute_script("return document.querySelector('.answer h2').getBoundingClientRect().bottom") < 640


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_words_can_be_read(opened: Any, scheme: str) -> None:
    look(opened, 1280, scheme)
    opened.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert opened.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    worst = opened.execute_script(CONTRAST)
    assert worst[0] >= 4.5, worst


def test_a_keyboard_reaches_everything(opened: Any) -> None:
    def press(key: str) -> Any:
        webdriver.ActionChains(opened).send_keys(key).perform()
        return opened.execute_script(FOCUSED)

    tag, kind, _, outline, left = press("\ue004")  # the tab key
    assert (tag, kind) == ("A", "skip")
    assert outline >= 2
    assert left >= 0, "it shows once it is reached"
    assert press("\ue004")[2] == "#part-1", "and after it the sections"
    seen: list[Any] = []
    while not seen or seen[-1][0] != "SUMMARY":
        seen.append(press("\ue004"))
        assert len(seen) < 40
    assert all(outline >= 2 for *_, outline, _ in seen), "one sees where one is"
    press(" ")
    assert opened.execute_script("return document.activeElement.parentElement.open") is True


def test_the_skip_link_leads_to_the_answer(opened: Any) -> None:
    webdriver.ActionChains(opened).send_keys("\ue004", "\ue007").perform()
    assert opened.execute_script("return document.activeElement.id") == "main"


def test_headings_go_down_one_by_one_and_ids_are_unique(opened: Any) -> None:
    levels = opened.execute_script("return [...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = opened.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    regions = opened.execute_script(
        "return [...document.querySelectorAll('[role=region]')].map(e => [e.tabIndex, e.ariaLabel])"
    )
    assert regions
    assert all(tab == 0 and name for tab, name in regions)


def test_paper_shows_what_is_folded_and_cuts_nothing_off(opened: Any) -> None:
    look(opened, 1040, "dark", "print")  # A4 across, less its margins
    shown = "e => e.closest('details details.data') || e.checkVisibility()"
    assert opened.execute_script(f"return [...document.querySelectorAll('table, pre')].every({shown})")
    assert opened.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.execute_script(OVERFLOW) == 0
    look(opened, 1280, "light")
    pdf = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    data = base64.b64decode(pdf["data"])
    assert data.startswith(b"%PDF-")
    assert len(data) > 20_000


def look(browser: Any, width: int, scheme: str, media: str = "") -> None:
    """As seen in a window so wide, by someone who prefers light or dark, on a screen or in print."""
    wanted = {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
