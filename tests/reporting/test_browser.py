"""The page in a real browser: it asks nothing of anybody, its slider works, and one can read it everywhere."""

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

PAGES = ("audit", "experiments", "missing", "sweep", "search")
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
const words = 'p, li, h1, h2, h3, dt, dd span, td, th, caption small, summary, a, label, output, .rows span, svg text';
return [...document.querySelectorAll(words)].map(e => {
  const style = getComputedStyle(e), ink = light(e.closest('svg') ? style.fill : style.color), paper = light(behind(e));
  return [(Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05), e.tagName, e.textContent.slice(0, 40)];
}).sort((a, b) => a[0] - b[0])[0];
"""
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
SHOW_ALL = """
document.querySelectorAll('details').forEach(e => { e.open = true; });
document.querySelectorAll('[hidden]').forEach(e => { e.hidden = false; });
"""
STEP = """
const visible = [...document.querySelector('.explorer').querySelectorAll('.step')].filter(e => e.checkVisibility());
return [visible.length, visible[0].querySelector('h3').textContent, visible[0].textContent];
"""
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
    sweep = made.experiment("sweep", [0.1, 0.3, 0.5, 0.7, 0.9], ["codes"])
    sweep["rows"] = [row for row in sweep["rows"] if row["encoder"] == "gcn"]
    made.write(folder / "sweep" / "sweep.json", sweep)
    report(folder / "sweep", folder / "sweep.html")
    report(made.search(folder / "search"), folder / "search.html")
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = start()
    yield driver
    driver.quit()


def start(**prefs: object) -> Any:
    """A browser without a window, with these preferences."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1280,900"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", prefs)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


@pytest.fixture(params=PAGES)
def opened(request: pytest.FixtureRequest, browser: Any, pages: dict[str, Path]) -> Any:
    """The browser with a report in it, at the width of a desk."""
    look(browser, 1280, "light")
    browser.get_log("performance")
    browser.get(pages[request.param].as_uri())
    return browser


def test_it_renders_and_asks_nothing_of_anybody(opened: Any) -> None:
    drawn = (
        "return [...document.querySelectorAll('svg[role=img]')].every(e => e.closest('details:not([open]), [hidden]')"
    )
    assert opened.execute_script(f"{drawn} || e.getBoundingClientRect().height > 100)")
    assert opened.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    requested = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert opened.current_url in requested
    assert {url for url in requested if not url.startswith("data:")} == {opened.current_url}


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_runs_out_of_the_window(opened: Any, width: int) -> None:
    look(opened, width, "light")
    opened.execute_script(SHOW_ALL)
    assert opened.execute_script(OVERFLOW) == 0
    assert opened.execute_script("return document.querySelector('.answer h2').getBoundingClientRect().bottom") < 640


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_words_can_be_read(opened: Any, scheme: str) -> None:
    look(opened, 1280, scheme)
    opened.execute_script(SHOW_ALL)
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


@pytest.mark.parametrize("name", ["sweep", "search"])
def test_the_slider_changes_the_numbers_by_keyboard(browser: Any, pages: dict[str, Path], name: str) -> None:
    look(browser, 1280, "light")
    browser.get(pages[name].as_uri())
    explorer = browser.find_element("css selector", ".explorer")
    slider, output = (explorer.find_element("css selector", name) for name in ("input", "output"))
    said = "return arguments[0].textContent"
    slider.send_keys("\ue011")  # the home key
    seen: list[tuple[str, str, str]] = []
    for _ in range(int(slider.get_attribute("max"))):
        count, title, text = browser.execute_script(STEP)
        assert count == 1, "one point at a time"
        numbers = browser.execute_script(said, output)
        assert numbers.startswith(title)
        assert slider.get_attribute("aria-valuetext") == numbers
        marked = explorer.find_elements("css selector", ".current")
        assert [one.get_attribute("data-step") for one in marked] == [str(len(seen))]
        seen.append((title, text, numbers))
        slider.send_keys("\ue014")  # the right arrow
    assert len(seen) >= 2
    assert len(set(seen)) == len(seen), "every point has its own numbers"
    assert all(a[1] != b[1] for a, b in pairwise(seen))
    assert browser.get_log("browser") == [], "the content policy allows the script"


def test_without_scripts_all_points_are_there(pages: dict[str, Path]) -> None:
    driver = start(**{"profile.managed_default_content_settings.javascript": 2})
    try:
        driver.get(pages["search"].as_uri())
        assert [one.is_displayed() for one in driver.find_elements("css selector", ".step")] == [True] * 3
        assert not driver.find_element("css selector", ".explorer input").is_displayed()
    finally:
        driver.quit()


def test_a_click_into_the_chart_moves_the_slider(browser: Any, pages: dict[str, Path]) -> None:
    look(browser, 1280, "light")
    browser.get(pages["search"].as_uri())
    first = browser.find_element("css selector", ".explorer [data-step='0']")
    webdriver.ActionChains(browser).move_to_element(first).click().perform()
    assert browser.find_element("css selector", ".explorer input").get_attribute("value") == "1"
    assert "λ 0.3" in browser.execute_script(STEP)[1]


def test_the_policy_blocks_every_other_script(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    page = (
        pages["search"].read_text(encoding="utf-8").replace("</main>", "<script>document.title = 'in'</script></main>")
    )
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    browser.get((tmp_path / "page.html").as_uri())
    assert browser.title != "in"
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))


def test_a_wide_table_scrolls_in_its_box_and_a_shadow_says_so(browser: Any, pages: dict[str, Path]) -> None:
    look(browser, 360, "light")
    browser.get(pages["sweep"].as_uri())
    box = browser.find_element("xpath", "//div[@class='scroll' and contains(@aria-label, 'All trade-offs')]")
    hidden = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert browser.execute_script(hidden, box) > 100

    place = "const at = arguments[0].getBoundingClientRect(); return [at.right + scrollX, at.top + scrollY]"
    right, top = browser.execute_script(place, box)

    def pixel(x: float) -> str:
        """One pixel at the height of the top of the box, where the table has no text."""
        clip = {"x": x, "y": top + 2, "width": 1, "height": 1, "scale": 1}
        return str(browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}))

    outside = pixel(right + 3)
    assert pixel(right - 2) != outside, "it goes on"
    browser.execute_script("arguments[0].scrollLeft = arguments[0].scrollWidth", box)
    assert pixel(right - 2) == outside, "it is at its end"


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
    shown = "e => e.closest('details details.data, .step details.data') || e.checkVisibility()"
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
