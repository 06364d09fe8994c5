"""A team reviews a sample: personal links and codes, blind reading, two browsers, flags, decisions, proxies, attacks.

Pages are read as people read them: forms are sent with all that is in them, and buttons are found by value or words.
"""

import csv
import http.client
import io
import json
import re
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import polars as pl
import pytest

from tests import ROOT
from tests.conftest import need
from tests.support import browsing, scale_runs
from tests.support.reviewing_team import (
    GRADES,
    JUDGES,
    PERSONS,
    RUN,
    SCRIPT,
    Browser,
    Page,
    Site,
    Team,
    decided,
    entered_as,
    enters,
    flagged,
    graded,
    is_inside,
    make,
    opened,
    serving,
    token_of,
)
from tests.support.runs import curate, ran, started

WANG, LI = PERSONS
PUBLIC = "https://review.hospital.cn"
DAY = 24 * 3600


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run, to be copied."""
    folder = tmp_path_factory.mktemp("team")
    make(folder)
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def team(folder: Path) -> Team:
    """Return a sample of 40 items that two people read in full."""
    return Team(folder).draw()


@pytest.fixture
def site(team: Team) -> Iterator[Site]:
    """Return the server of the sample; a link was made before it started, as a lead would."""
    team.invite("boss", "--role", "lead")
    with serving(team.folder) as running:
        yield running


def event_text(team: Team) -> str:
    return json.dumps(team.events(), ensure_ascii=False)


def files(folder: Path) -> dict[str, bytes]:
    """Return what is in all files of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


def day(text: str) -> datetime:
    """Return a moment, or the day, that a command named."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# Links


def test_a_link_is_printed_with_its_end(team: Team) -> None:
    """`curate review invite NAME` prints one personal link and until when it is good."""
    done = team.cli("invite", WANG, "--role", "assessor")
    assert done.returncode == 0, done.stderr
    (link,) = re.findall(r"https?://\S+", done.stdout)
    assert len(token_of(link)) >= 43, "256 bits"
    rest = done.stdout.replace(link, "")
    assert re.search(r"\d{4}-\d{2}-\d{2}|\d{1,2} \w+|\w+ \d{1,2}|\d+ *月", rest)


def test_a_link_is_for_one_person_in_one_role(team: Team) -> None:
    """The answer to machines has name, role, link and end, and the list names the same person and role."""
    for role in ("assessor", "adjudicator", "lead", "reader"):
        name = WANG if role == "assessor" else f"person-{role}"
        found = team.invite(name, "--role", role)
        assert (found["name"], found["role"]) == (name, role)
        assert token_of(found["link"])
        assert day(found["until"])
        (listed,) = [each for each in team.data("invite", "--list")["people"] if each["name"] == name]
        assert listed["role"] == role
        assert {"name", "role", "until", "state"} <= listed.keys()


def test_a_link_ends_after_its_days(team: Team) -> None:
    """Without `--days` a link is good for 30 days, else for as many as were asked for."""
    for words, days in (((), 30), (("--days", "1"), 1), (("--days", "90"), 90)):
        left = day(team.invite(WANG, *words)["until"]) - datetime.now(UTC)
        assert days - 1.1 <= left.total_seconds() / DAY <= days + 1.1


def test_an_unknown_role_is_refused(team: Team) -> None:
    """A role that there is not makes no link."""
    done = team.cli("invite", WANG, "--role", "owner")
    assert done.returncode == 2
    assert "No such command" not in done.stderr
    assert re.search("adjudicator", done.stderr)
    assert not (team.review / "access.jsonl").exists()


def test_a_code_has_eight_digits_and_no_link_is_printed(team: Team) -> None:
    """`--code` prints a one-time code of eight digits in place of a link."""
    done = team.cli("invite", WANG, "--role", "assessor", "--code")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"(?<!\d)\d{8}(?!\d)", done.stdout)) == 1
    assert "/enter#" not in done.stdout
    assert re.fullmatch(r"\d{8}", team.code(WANG))


def test_secrets_are_in_no_file(team: Team) -> None:
    """Tokens and codes are printed once and kept nowhere in clear; the file of links is the owner's alone."""
    secrets = [team.token(WANG), team.token(WANG), team.token("boss", "--role", "lead"), team.code(LI)]
    assert len(set(secrets)) == 4
    path = team.review / "access.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for secret in secrets:
        for name, content in files(team.folder).items():
            assert secret.encode() not in content, name
    assert all(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def test_links_that_are_made_at_once_are_all_good(site: Site, team: Team) -> None:
    """Several commands that invite at the same time, each a process of its own, lose no link."""
    words = ("review", "invite", WANG, "--role", "assessor", "--json", "--run", RUN)
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: started(team.folder, *words), range(4)))
    assert [done.returncode for done in made] == [0] * 4, made[0].stderr
    for done in made:
        token = token_of(json.loads(done.stdout)["data"]["link"])
        assert is_inside(enters(site, token), team.rows(WANG)[0])


def test_the_file_of_links_is_only_appended_to(site: Site, team: Team) -> None:
    """Inviting, entering, listing and revoking only add lines to what was kept before."""
    path = team.review / "access.jsonl"
    before = path.read_bytes()
    assert before
    token = team.token(WANG)
    enters(site, token)
    team.data("invite", "--list")
    team.data("invite", WANG, "--revoke")
    after = path.read_bytes()
    assert after.startswith(before)
    assert len(after) > len(before)


def test_the_list_says_who_is_still_let_in(team: Team) -> None:
    """The state of a person changes when the links are ended; no secret is listed."""
    tokens = [team.token(WANG), team.token(LI)]
    before = {each["name"]: each for each in team.data("invite", "--list")["people"]}
    team.data("invite", WANG, "--revoke")
    done = team.cli("invite", "--list", "--json")
    after = {each["name"]: each for each in json.loads(done.stdout)["data"]["people"]}
    assert before[WANG]["state"] != after[WANG]["state"]
    assert before[LI]["state"] == after[LI]["state"]
    assert not [token for token in tokens if token in done.stdout]


ODD_NAMES = ("O'Brien", "Anna Müller", '"quoted"', "a/b", "<b>x</b>", "", ".", "..", "x" * 300, "../outside")


@pytest.mark.parametrize("names", [("王医生",), ODD_NAMES], ids=["chinese", "odd"])
def test_any_name_is_taken_or_refused_in_a_sentence(team: Team, names: tuple[str, ...]) -> None:
    """A name never leads out of the sample's folder and never ends in a traceback; a Chinese one is taken."""
    inside = str(team.review.relative_to(team.folder))
    for name in names:
        before = files(team.folder)
        done = curate(team.folder, "review", "invite", "--role", "lead", "--json", "--run", RUN, "--", name)
        assert "No such command" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert done.returncode == 0 if name == "王医生" else done.returncode in (0, 2)
        changed = {path for path, content in files(team.folder).items() if before.get(path) != content}
        assert not [path for path in changed if not path.startswith((inside, "home/"))], name
        if done.returncode == 0:
            assert json.loads(done.stdout)["data"]["name"] == name


def test_people_whose_names_differ_in_case_are_two(site: Site, team: Team) -> None:
    """Somebody with the name of an assessor in capitals reads and ends nothing of that assessor's."""
    mine = enters(site, team.token(WANG))
    done = team.cli("invite", WANG.upper(), "--role", "assessor", "--json")
    assert "No such command" not in done.stdout + done.stderr
    row = team.rows(WANG)[0]
    if done.returncode == 0:
        other, _ = entered_as(site, token_of(json.loads(done.stdout)["data"]["link"]))
        assert not is_inside(other, row)
    team.cli("invite", WANG.upper(), "--revoke")
    assert graded(mine, row, "B").status < 400
    assert team.answers(WANG) == {row: "B"}


# Entering


def test_a_link_may_be_opened_in_two_browsers(site: Site, team: Team) -> None:
    """A link is good for every browser of a person until it ends, and each gets a pass of its own."""
    token = team.token(WANG)
    one, other = enters(site, token), enters(site, token)
    assert one.cookies != other.cookies
    row = team.rows(WANG)[0]
    assert is_inside(one, row)
    assert is_inside(other, row)


def test_a_mail_scanner_uses_nothing_up(site: Site, team: Team) -> None:
    """Fetching the page /enter makes no pass, however often; the link is good afterwards."""
    token = team.token(WANG)
    for method in ("GET", "HEAD", "GET", "GET", "GET", "GET", "GET"):
        scanner = Browser(site)
        assert scanner.raw(method, "/enter").status in (200, 405)
        assert not is_inside(scanner, team.rows(WANG)[0])
    assert is_inside(enters(site, token), team.rows(WANG)[0])
    assert len(team.events("entered")) == 1


def test_a_secret_in_an_address_lets_nobody_in(site: Site, team: Team) -> None:
    """A token or a code is taken by POST alone, so that no proxy's log is worth anything."""
    row = team.rows(WANG)[0]
    for what, secret in (("token", team.token(WANG)), ("code", team.code(WANG))):
        for path in ("/enter", "/review", "/"):
            browser = Browser(site)
            browser.get(f"{path}?{what}={quote(secret)}")
            assert not is_inside(browser, row)
        assert is_inside(enters(site, secret, what), row)


def test_a_token_that_was_made_up_is_refused(site: Site, team: Team) -> None:
    """What is no token lets nobody in and breaks nothing."""
    for made_up in ("", "x", "é" * 43, "0" * 64, "none", '{"a": 1}', "x" * 20000):
        token = team.token(WANG)
        browser, answer = entered_as(site, made_up)
        assert answer.status < 500
        assert not is_inside(browser, team.rows(WANG)[0])
        assert is_inside(enters(site, token), team.rows(WANG)[0])


def test_a_token_that_is_nearly_right_is_refused(site: Site, team: Team) -> None:
    """A token is compared in full; what is kept of it on the disk lets nobody in either."""
    token = team.token(WANG)
    kept = re.findall(r"[0-9a-fA-F]{64}|[\w+/=-]{43,44}", (team.review / "access.jsonl").read_text(encoding="utf-8"))
    for wrong in (token[:-1], f"{token}x", *kept):
        browser, _ = entered_as(site, wrong)
        assert not is_inside(browser, team.rows(WANG)[0])


def test_a_cookie_that_was_made_up_is_no_pass(site: Site, team: Team) -> None:
    """A pass that nobody got, or that is cut short, opens nothing."""
    row, browser = team.rows(WANG)[0], enters(site, team.token(WANG))
    for value in ("", "x", WANG, "0" * 64):
        assert not is_inside(Browser(site, cookies=dict.fromkeys(browser.cookies, value)), row)
    cut = {name: value[:-1] for name, value in browser.cookies.items()}
    assert not is_inside(Browser(site, cookies=cut), row)


def test_a_code_is_good_once(site: Site, team: Team) -> None:
    """The first to enter by a code is let in, nobody after that."""
    code, row = team.code(WANG), team.rows(WANG)[0]
    assert is_inside(enters(site, code, "code"), row)
    browser, _ = entered_as(site, code, "code")
    assert not is_inside(browser, row)


@pytest.mark.parametrize(("wrong", "good"), [(4, True), (5, False)])
def test_a_code_has_five_tries(site: Site, team: Team, wrong: int, good: bool) -> None:
    """The fifth try may be right; after five wrong ones even the right code is refused."""
    code, row = team.code(WANG), team.rows(WANG)[0]
    for number in range(1, wrong + 1):
        browser, _ = entered_as(site, f"{(int(code) + number) % 10**8:08}", "code")
        assert not is_inside(browser, row)
    browser, _ = entered_as(site, code, "code")
    assert is_inside(browser, row) is good


def test_a_token_of_another_sample_is_refused(team: Team) -> None:
    """Links are of one sample: those of another one of the same run open nothing."""
    second = Team(team.folder, "second").draw(30, WANG, "0", "--set", "seed=46")
    other = second.token(WANG, "--sample", "second")
    token = team.token(WANG, "--sample", "expert")
    with serving(team.folder, "--sample", "expert") as site:
        browser, _ = entered_as(site, other)
        assert not is_inside(browser, team.rows(WANG)[0])
        assert not is_inside(browser, second.rows(WANG)[0])
        assert is_inside(enters(site, token), team.rows(WANG)[0])


def test_ended_links_let_nobody_in(site: Site, team: Team) -> None:
    """`--revoke` ends all of a person's links and codes, and nobody else's."""
    ended = [(team.token(WANG), "token"), (team.token(WANG), "token"), (team.code(WANG), "code")]
    kept = team.token(LI)
    team.data("invite", WANG, "--revoke")
    for secret, what in ended:
        browser, _ = entered_as(site, secret, what)
        assert not is_inside(browser, team.rows(WANG)[0])
    assert is_inside(enters(site, kept), team.rows(LI)[0])
    assert team.events("ended")


def test_who_was_ended_may_be_invited_again(site: Site, team: Team) -> None:
    """A new link is good, and the old one stays ended."""
    old, row = team.token(WANG), team.rows(WANG)[0]
    team.data("invite", WANG, "--revoke")
    new = team.token(WANG)
    assert is_inside(enters(site, new), row)
    browser, _ = entered_as(site, old)
    assert not is_inside(browser, row)


def test_a_pass_ends_with_its_link_while_a_page_is_open(site: Site, team: Team) -> None:
    """What is sent from a page that was opened before the link was ended is not saved."""
    first, second, *_ = team.rows(WANG)
    browser = enters(site, team.token(WANG))
    assert graded(browser, first, "A").status < 400
    page = opened(browser, second)
    team.data("invite", WANG, "--revoke")
    answer = browser.press(page, page.grade("B"))
    assert answer.status >= 300
    assert team.answers(WANG) == {first: "A"}
    assert not is_inside(browser, second)


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) {
  const char *name = getenv("CLOCK_SHIFT");
  FILE *file = name ? fopen(name, "r") : 0;
  long found = 0;
  if (file) { if (fscanf(file, "%ld", &found) != 1) found = 0; fclose(file); }
  return found;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += shift();
  return done;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec; now->tv_usec = found.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *place) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (place) *place = found.tv_sec;
  return found.tv_sec;
}
"""


class Clock:
    """The clock of a server, which can be moved while it runs."""

    def __init__(self, folder: Path) -> None:
        need(shutil.which("cc") is not None, "a C compiler (cc)")
        self.file, source = folder / "shift", folder / "shift.c"
        self.shim = folder / "shift.so"
        source.write_text(SHIM, encoding="utf-8")
        self.move(0)
        command = ["cc", "-shared", "-fPIC", "-o", str(self.shim), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)

    @property
    def variables(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.shim), "CLOCK_SHIFT": str(self.file)}

    def move(self, seconds: int) -> None:
        self.file.write_text(str(seconds), encoding="utf-8")


@pytest.fixture
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    need(shutil.which("cc") is not None, "a C compiler")
    return Clock(tmp_path_factory.mktemp("clock"))


def test_a_link_is_good_until_its_day_and_not_after(team: Team, clock: Clock) -> None:
    """A link of 30 days lets in after 29 and not after 31; a pass that it gave ends, too."""
    token, row = team.token(WANG), team.rows(WANG)[0]
    with serving(team.folder, **clock.variables) as site:
        clock.move(29 * DAY)
        early = enters(site, token)
        page = opened(early, row)
        clock.move(31 * DAY + 3600)
        late, _ = entered_as(site, token)
        assert not is_inside(late, row)
        assert early.press(page, page.grade("A")).status >= 300
        assert team.answers(WANG) == {}


@pytest.mark.parametrize(("hours", "good"), [(23, True), (25, False)])
def test_a_code_is_good_for_a_day(team: Team, clock: Clock, hours: int, good: bool) -> None:
    """A one-time code ends after 24 hours."""
    code, row = team.code(WANG), team.rows(WANG)[0]
    with serving(team.folder, **clock.variables) as site:
        clock.move(hours * 3600)
        browser, _ = entered_as(site, code, "code")
        assert is_inside(browser, row) is good


def test_a_clock_that_jumps_back_loses_nothing(team: Team, clock: Clock) -> None:
    """If the clock of the server goes back, people stay inside and their last answer counts."""
    first, second, *_ = team.rows(WANG)
    token = team.token(WANG)
    with serving(team.folder, **clock.variables) as site:
        clock.move(3600)
        browser = enters(site, token)
        assert graded(browser, first, "A").status < 400
        clock.move(-7200)
        assert graded(browser, first, "C").status < 400
        assert graded(browser, second, "B").status < 400
        assert is_inside(enters(site, token), first)
    assert team.answers(WANG) == {first: "C", second: "B"}


# Blind reading, and who may do what


def test_an_assessor_reads_own_items_only(team: Team) -> None:
    """Items of somebody else are not shown, and what is sent to them is not saved."""
    split = Team(team.folder, "split").draw(30, ",".join(PERSONS), "0", "--set", "seed=5")
    mine, others = split.rows(WANG), split.rows(LI)
    assert not set(mine) & set(others)
    token = split.token(WANG, "--sample", "split")
    with serving(team.folder, "--sample", "split") as site:
        browser = enters(site, token)
        page = opened(browser, mine[0])
        assert not is_inside(browser, others[0])
        choice = page.grade("S")
        assert choice is not None
        fields = {**page.filled(choice.form), choice.name: choice.value}
        for path in (f"/review/{others[0]}", page.action(choice.form).replace(mine[0], others[0])):
            assert browser.raw("POST", path, fields).status >= 400
    assert split.answers(WANG) == split.answers(LI) == {}


def test_an_assessor_answers_in_no_other_name(site: Site, team: Team) -> None:
    """A pass is of one person: no address and no field lets an answer be saved under another name."""
    for other in (f"/by/{LI}", f"/review/by/{LI}", f"/review/{LI}", f"/review?person={LI}"):
        row, browser = team.rows(LI)[0], enters(site, team.token(WANG))
        page = opened(browser, row)
        choice = page.grade("S")
        assert choice is not None
        fields = {**page.filled(choice.form), choice.name: choice.value, "person": LI, "name": LI, "assessor": LI}
        path, _, asked = other.partition("?")
        browser.raw("POST", f"{path}/{row}" + (f"?{asked}" if asked else ""), fields)
        browser.raw("POST", f"{page.action(choice.form)}?person={LI}", fields)
        assert team.answers(LI) == {}


def hidden_addresses(team: Team) -> list[str]:
    """Return addresses at which grades are to be seen by those who may."""
    query, doc = pl.read_parquet(team.review / "survey.parquet")["ids"].to_list()[0]
    one, other = quote(query, safe=""), quote(doc, safe="")
    return [
        *("/", "/queries", "/pairs", "/judges", "/search", "/report", "/report.html", "/pairs?jalpha=S"),
        *(f"/q/{one}", f"/q/{one}/{other}", f"/doc/{other}", f"/q/{quote(query)}/{quote(doc)}"),
        *("/review/progress", "/review/decide", f"/review/decide/{team.rows()[0]}", f"/by/{LI}", "/review/log"),
        *("/review/../queries", "/static/../queries", "//queries", f"/runs/team/reviews/expert/answers/{LI}.jsonl"),
    ]


def test_an_assessor_reaches_no_grade_by_any_address(site: Site, team: Team) -> None:
    """While the sample is open, an assessor sees neither a judge nor a verdict nor what another person said."""
    other = enters(site, team.token(LI))
    for row in team.rows(LI)[:5]:
        assert graded(other, row, "B", note="note-of-li").status < 400
    browser = enters(site, team.token(WANG))
    for path in hidden_addresses(team):
        page = browser.get(path)
        for secret in (*JUDGES, "note-of-li"):
            assert secret not in page.html, path
        if path.startswith(("/q", "/pairs", "/judges", "/search", "/doc")):
            assert page.status in (403, 404), path
        if path.startswith(("/review/progress", "/review/decide")):
            assert page.status in (403, 404), path


def test_no_page_of_an_assessor_leads_to_a_grade(site: Site, team: Team) -> None:
    """Whatever is reached by links from the first page names no judge and nothing that another person said."""
    other = enters(site, team.token(LI))
    assert graded(other, team.rows(LI)[0], "B", note="note-of-li").status < 400
    browser = enters(site, team.token(WANG))
    seen: set[str] = set()
    todo = ["/review", f"/review/{team.rows(WANG)[0]}"]
    while todo and len(seen) < 60:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        page = browser.get(path)
        assert page.status < 500, path
        assert not [word for word in (*JUDGES, "note-of-li") if word in page.html], path
        todo += [link for link, _ in page.links if urlsplit(link).netloc in ("", site.host)]
    assert len(seen) > 3


def test_who_is_no_assessor_gives_no_answer(site: Site, team: Team) -> None:
    """Readers look, leads lead and adjudicators decide: none of them answers in an assessor's name."""
    for role in ("reader", "lead", "adjudicator"):
        mine, row = enters(site, team.token(WANG)), team.rows(WANG)[0]
        page = opened(mine, row)
        choice = page.grade("S")
        assert choice is not None
        browser = enters(site, team.token(f"person-{role}", "--role", role))
        theirs = browser.get(f"/review/{row}")
        if theirs.status == 200 and theirs.grade("S"):
            browser.press(theirs, theirs.grade("S"))
        fields = {**page.filled(choice.form), choice.name: choice.value}
        browser.raw("POST", page.action(choice.form), fields)
        assert team.answers(WANG) == team.answers(LI) == team.answers(f"person-{role}") == {}


PLACES = (
    ("lead", "/review/progress", True),
    ("adjudicator", "/review/decide", True),
    ("reader", "/review/progress", False),
    ("reader", "/review/decide", False),
    ("assessor", "/review/progress", False),
    ("assessor", "/review/decide", False),
)


def test_pages_are_for_their_roles(site: Site, team: Team) -> None:
    """Progress is the lead's and decisions are the adjudicator's; assessors and readers get neither."""
    for role, path, let_in in PLACES:
        name = WANG if role == "assessor" else f"person-{role}"
        page = enters(site, team.token(name, "--role", role)).get(path)
        assert (page.status == 200 and page.path.startswith(path)) is let_in
        assert let_in or page.status in (403, 404)


def test_a_lead_follows_how_far_everybody_is(site: Site, team: Team) -> None:
    """Progress names every person with what is done, at once, and the items that nobody could judge."""
    lead = enters(site, team.token("boss", "--role", "lead"))
    browser = enters(site, team.token(WANG))
    for row in team.rows(WANG)[:7]:
        assert graded(browser, row, "A").status < 400
    doubtful = team.rows(WANG)[9]
    assert flagged(browser, doubtful, "cannot_judge", "text").status < 400
    page = lead.get("/review/progress")
    assert page.status == 200
    for name in PERSONS:
        assert page.names(name)
    around = [
        node.text()
        for node in page.root.all("tr", "li", "section", "article", "dl", "div", "main")
        if WANG in node.text()
    ]
    told = min(around, key=len)
    assert re.search(r"(?<!\d)7(?!\d)", told), told
    assert re.search(r"(?<!\d)(40|33|32)(?!\d)", told), told
    assert doubtful in page.html


def test_the_log_says_who_did_what_and_when(site: Site, team: Team) -> None:
    """Invited, entered, answered, flagged and ended are in the log with time, person and item, and no address."""
    browser = enters(site, team.token(WANG))
    first, second, *_ = team.rows(WANG)
    assert graded(browser, first, "A").status < 400
    assert flagged(browser, second, "cannot_judge", "query").status < 400
    team.data("invite", WANG, "--revoke")
    mine = [each for each in team.events() if each["person"] == WANG]
    assert list(dict.fromkeys(each["event"] for each in mine)) == [
        "invited",
        "entered",
        "answered",
        "flagged",
        "ended",
    ]
    items = {each["event"]: each["item"] for each in mine}
    assert (items["answered"], items["flagged"]) == (first, second)
    moments = [day(each["at"]) for each in mine]
    assert moments == sorted(moments)
    assert abs((datetime.now(UTC) - moments[-1]).total_seconds()) < 600
    assert "127.0.0.1" not in event_text(team)
    said = team.cli("log").stdout
    assert WANG in said
    assert first in said


# Two browsers of one person


def test_two_browsers_overwrite_nothing_silently(site: Site, team: Team) -> None:
    """An answer from a page that was drawn before another answer is refused with 409, which shows what is stored."""
    token, row = team.token(WANG), team.rows(WANG)[0]
    one, other = enters(site, token), enters(site, token)
    old = opened(other, row)
    assert graded(one, row, "S").status < 400
    answer = other.press(old, old.grade("C"))
    assert answer.status == 409
    assert answer.names("S")
    assert team.answers(WANG) == {row: "S"}
    conflicts = team.events("conflict")
    assert [(each["person"], each["item"]) for each in conflicts] == [(WANG, row)]


@pytest.mark.parametrize("kept", ["S", "C"])
def test_a_conflict_is_resolved_on_the_page(site: Site, team: Team, kept: str) -> None:
    """The page of a conflict offers both answers, and the one that is chosen counts."""
    token, row = team.token(WANG), team.rows(WANG)[0]
    one, other = enters(site, token), enters(site, token)
    old = opened(other, row)
    assert graded(one, row, "S").status < 400
    page = other.press(old, old.grade("C"))
    assert page.status == 409
    choice = page.grade(kept) or page.find(pattern=rf"(?<!\w){kept}(?!\w)")
    if choice is None:  # to keep what is stored may be a link
        assert kept == "S"
        assert [label for _, label in page.links if re.search(r"(?<!\w)S(?!\w)", label)]
    else:
        assert other.press(page, choice).status < 400
    assert team.answers(WANG) == {row: kept}
    assert graded(one, row, "B").status < 400, "from a fresh page an answer may be changed"
    assert team.answers(WANG) == {row: "B"}


def test_two_servers_of_one_run_overwrite_nothing_silently(site: Site, team: Team) -> None:
    """A second server of the same sample knows what was answered at the first one."""
    token, row = team.token(WANG), team.rows(WANG)[0]
    with serving(team.folder) as second:
        one, other = enters(site, token), enters(second, token)
        old = opened(other, row)
        assert graded(one, row, "S").status < 400
        assert other.press(old, old.grade("C")).status == 409
        assert graded(other, row, "B").status < 400
        assert team.answers(WANG) == {row: "B"}
        team.data("invite", WANG, "--revoke")
        assert not is_inside(one, row)
        assert not is_inside(other, row)


def test_the_same_form_sent_by_many_at_once_is_taken_once(site: Site, team: Team) -> None:
    """Of ten different answers from pages of one mark, one is stored and the others are told of it."""
    token, row = team.token(WANG), team.rows(WANG)[0]
    browser = enters(site, token)
    page = opened(browser, row)
    barrier = threading.Barrier(10)

    def send(number: int) -> int:
        barrier.wait()
        sender = Browser(site, cookies=browser.cookies)
        return sender.press(page, page.grade(GRADES[number % 5])).status

    with ThreadPoolExecutor(10) as threads:
        statuses = list(threads.map(send, range(10)))
    taken = [number for number, status in enumerate(statuses) if status < 400]
    assert set(statuses) <= {200, 302, 303, 409}
    assert taken
    assert len({GRADES[number % 5] for number in taken}) == 1
    assert team.answers(WANG) == {row: GRADES[taken[0] % 5]}


# Nothing is lost


def test_135_answers_at_once_are_all_kept(folder: Path) -> None:
    """135 answers of two people that arrive in one moment are all in their files, each with its own grade."""
    team = Team(folder).draw(70)
    tokens = {name: team.token(name) for name in PERSONS}
    with serving(folder) as site:
        browsers = {name: enters(site, token) for name, token in tokens.items()}
        jobs = [(name, row, opened(browsers[name], row)) for name in PERSONS for row in team.rows(name)][:135]
        barrier = threading.Barrier(len(jobs))

        def send(job: tuple[int, tuple[str, str, Page]]) -> int:
            number, (name, _, page) = job
            barrier.wait()
            sender = Browser(site, cookies=browsers[name].cookies)
            return sender.press(page, page.grade(GRADES[number % 5])).status

        with ThreadPoolExecutor(len(jobs)) as threads:
            statuses = list(threads.map(send, enumerate(jobs)))
    assert len(jobs) == 135
    assert set(statuses) <= {200, 302, 303}
    for number, (name, row, _) in enumerate(jobs):
        assert team.answers(name)[row] == GRADES[number % 5]


def test_no_answer_is_lost_when_the_server_is_killed(team: Team) -> None:
    """What was answered with success is on the disk after kill -9, and the link leads back to where one was."""
    tokens = {name: team.token(name) for name in PERSONS}
    with serving(team.folder) as site:
        browsers = {name: enters(site, token) for name, token in tokens.items()}
        jobs = [(name, row, opened(browsers[name], row)) for row in team.rows() for name in PERSONS]
        taken: list[tuple[str, str, str]] = []

        def send(job: tuple[int, tuple[str, str, Page]]) -> None:
            number, (name, row, page) = job
            try:
                sender = Browser(site, cookies=browsers[name].cookies)
                answer = sender.press(page, page.grade(GRADES[number % 5]))
            except (OSError, http.client.HTTPException):
                return
            if answer.status < 400:
                taken.append((name, row, GRADES[number % 5]))
                if len(taken) == 25:
                    site.kill()

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(send, enumerate(jobs)))
    assert 25 <= len(taken) < len(jobs)
    for name, row, grade in taken:
        assert team.answers(name)[row] == grade
    with serving(team.folder) as site:
        name, row, _ = taken[0]
        browser = enters(site, tokens[name])
        left = next(each for each in team.rows(name) if each not in team.answers(name))
        assert graded(browser, left, "A").status < 400
        assert graded(browser, row, "B").status < 400
    assert team.answers(name)[left] == "A"


def test_answers_keep_their_five_keys(site: Site, team: Team) -> None:
    """Lines of answers have the keys that they always had, and a note is kept as it was written."""
    browser, row = enters(site, team.token(WANG)), team.rows(WANG)[0]
    assert graded(browser, row, "A", note=f"注 {SCRIPT}").status < 400
    (line,) = team.lines(WANG)
    assert set(line) == {"row_id", "answer", "note", "time", "source"}
    assert (line["row_id"], line["answer"], line["note"]) == (row, "A", f"注 {SCRIPT}")


# Sheets


def sheet(team: Team, person: str) -> list[list[str]]:
    """Return the rows of a person's sheet as it was written."""
    path = team.review / "sheets" / f"{person}.csv"
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def brought(team: Team, table: list[list[str]], name: str = "back.csv", end: str = "\r\n") -> Any:
    """Bring a sheet back."""
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator=end).writerows(table)
    (team.folder / name).write_bytes(stream.getvalue().encode("utf-8-sig"))
    return team.cli("import", str(team.folder / name))


def column(table: list[list[str]], pattern: str = "grade|等级") -> int:
    return next(at for at, head in enumerate(table[0]) if re.search(pattern, head, re.IGNORECASE))


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_sheets_in_flight_come_back_as_before(team: Team, end: str) -> None:
    """A sheet of grades and notes is imported, with the line ends of Windows or others; today too."""
    table = sheet(team, WANG)
    grade, note = column(table), column(table, "note|备注")
    for number, row in enumerate(table[1:]):
        row[grade], row[note] = GRADES[number % 5], "好" if number == 0 else ""
    done = brought(team, table, end=end)
    assert done.returncode == 0, done.stderr
    assert team.answers(WANG) == {row[0]: row[grade] for row in table[1:]}
    assert {frozenset(line) for line in team.lines(WANG)} == {frozenset(("row_id", "answer", "note", "time", "source"))}


def test_new_sheets_take_cannot_judge_and_personal_data(team: Team) -> None:
    """In a sheet `?` says that a text cannot be judged and `!` that it holds personal data; neither is an answer."""
    table = sheet(team, WANG)
    grade = column(table)
    for row, typed in zip(table[1:], ("?", "!", "A"), strict=False):
        row[grade] = typed
    done = brought(team, table)
    assert done.returncode == 0, done.stderr
    first, second, third = (row[0] for row in table[1:4])
    assert {row: given for row, given in team.answers(WANG).items() if given} == {third: "A"}
    told = {each["flag"]: json.dumps(each) for each in team.flags()}
    assert set(told) == {"cannot_judge", "personal_data"}
    assert first in told["cannot_judge"]
    assert second in told["personal_data"]
    assert all(WANG in text for text in told.values())


def test_a_sheet_with_flags_may_come_back_twice(team: Team) -> None:
    """Reading a file again changes nothing, flags included."""
    table = sheet(team, WANG)
    grade = column(table)
    for row, typed in zip(table[1:], ("?", "!", "A"), strict=False):
        row[grade] = typed
    assert brought(team, table).returncode == 0
    before = files(team.review)
    assert brought(team, table).returncode == 0
    assert files(team.review) == before


# Flags


def test_what_cannot_be_judged_is_said_with_its_reason(site: Site, team: Team) -> None:
    """`Cannot judge` on the page is kept with its reason, and is no answer."""
    browser = enters(site, team.token(WANG))
    for at, reason in enumerate(("query", "text", "field", "other")):
        row = team.rows(WANG)[at]
        assert flagged(browser, row, "cannot_judge", reason).status < 400
        flag = team.flags()[-1]
        assert (flag["flag"], flag["reason"]) == ("cannot_judge", reason)
        assert row in json.dumps(flag)
    assert len(team.flags()) == 4
    assert not [given for given in team.answers(WANG).values() if given]
    assert team.data("report")["read"] == 0
    wanted = [(WANG, row) for row in team.rows(WANG)[:4]]
    assert [(each["person"], each["item"]) for each in team.events("flagged")] == wanted


def test_not_my_field_goes_to_another_reader(team: Team) -> None:
    """An item that one assessor alone was to read, and that is not of that field, is to be read by the other."""
    split = Team(team.folder, "split").draw(30, ",".join(PERSONS), "0", "--set", "seed=5")
    tokens = {name: split.token(name, "--sample", "split") for name in PERSONS}
    row = split.rows(WANG)[0]
    with serving(team.folder, "--sample", "split") as site:
        other = enters(site, tokens[LI])
        assert not is_inside(other, row)
        assert flagged(enters(site, tokens[WANG]), row, "cannot_judge", "field").status < 400
        assert graded(other, row, "B").status < 400
    assert split.answers(LI) == {row: "B"}


def exports(team: Team, out: str = "handed") -> list[tuple[int, str]]:
    """Return exit code and words of what leaves a run: export, view --export and ready."""
    asked = (
        ("export", "--run", RUN, "--force"),
        ("view", RUN, "--export", str(team.folder / out), "--private"),
        ("ready", RUN),
    )
    found = []
    for words in asked:
        done = curate(team.folder, *words)
        found.append((done.returncode, " ".join((done.stdout + done.stderr).split())))
    return found


def counting(number: int) -> re.Pattern[str]:
    said = {1: "1|one", 2: "2|two"}[number]
    about = "personal.data|个人信息"
    return re.compile(rf"\b(?:{said})\b[^.;]{{0,60}}(?:{about})|(?:{about})[^.;]{{0,60}}\b(?:{said})\b", re.IGNORECASE)


@pytest.mark.parametrize("many", [1, 2])
def test_personal_data_stops_everything_that_leaves(site: Site, team: Team, many: int) -> None:
    """While a flag of personal data is open, nothing is exported and the run is not ready; the count is said."""
    browser = enters(site, team.token(WANG))
    for row in team.rows(WANG)[:many]:
        assert flagged(browser, row, "personal_data").status < 400
    assert [each["flag"] for each in team.flags()] == ["personal_data"] * many
    for code, said in exports(team):
        assert code != 0
        assert counting(many).search(said), said[-600:]
    assert not (team.folder / "handed").exists() or not list((team.folder / "handed").iterdir())


def test_harmless_data_lets_the_export_go_on(site: Site, team: Team) -> None:
    """Once every flag is settled the set is exported again; one that is left open still stops it."""
    browser = enters(site, team.token(WANG))
    first, second, *_ = team.rows(WANG)
    for row in (first, second):
        assert flagged(browser, row, "personal_data").status < 400
    listed = team.cli("flags")
    assert listed.returncode == 0, listed.stderr
    assert first in listed.stdout
    assert second in listed.stdout
    assert team.cli("flags", "--settle", first, "--as", "harmless").returncode == 0
    code, said = exports(team)[0]
    assert code != 0
    assert counting(1).search(said)
    assert team.cli("flags", "--settle", second, "--as", "harmless").returncode == 0
    assert exports(team, "later")[0][0] == 0


def test_a_flag_that_is_not_there_is_not_settled(site: Site, team: Team) -> None:
    """To settle an item without a flag, or in a way that there is not, is refused and changes nothing."""
    browser, row = enters(site, team.token(WANG)), team.rows(WANG)[0]
    assert flagged(browser, row, "personal_data").status < 400
    before = files(team.review)
    for words in ((team.rows(WANG)[1], "--as", "harmless"), ("nothing", "--as", "masked"), (row, "--as", "fine")):
        done = team.cli("flags", "--settle", *words)
        assert done.returncode == 2
        assert "No such command" not in done.stderr
        assert "Traceback" not in done.stderr
    assert files(team.review) == before
    assert exports(team)[0][0] != 0


def test_flags_of_two_people_at_once_are_all_kept(site: Site, team: Team) -> None:
    """Twenty flags that arrive in one moment are all kept, each with its item and its person."""
    browsers = {name: enters(site, team.token(name)) for name in PERSONS}
    jobs = [(name, row) for name in PERSONS for row in team.rows(name)[:10]]
    barrier = threading.Barrier(len(jobs))

    def send(job: tuple[str, str]) -> int:
        name, row = job
        sender = Browser(site, cookies=browsers[name].cookies)
        barrier.wait()
        return flagged(sender, row, "cannot_judge", "text").status

    with ThreadPoolExecutor(len(jobs)) as threads:
        assert set(threads.map(send, jobs)) <= {200, 302, 303}
    told = [json.dumps(each, ensure_ascii=False) for each in team.flags()]
    assert len(told) == len(jobs)
    for name, row in jobs:
        assert [text for text in told if name in text and row in text]


def test_cannot_judge_stops_no_export(site: Site, team: Team) -> None:
    """An item that nobody can judge is the lead's to look at, and no reason to keep a set back."""
    browser = enters(site, team.token(WANG))
    assert flagged(browser, team.rows(WANG)[0], "cannot_judge", "other").status < 400
    assert exports(team)[0][0] == 0


def test_many_unanswered_items_are_borne_in_mind(team: Team) -> None:
    """If more than 5 % cannot be judged, the report shows figures with bounds for the worst case."""
    table = sheet(team, WANG)
    for number, row in enumerate(table[1:]):
        row[column(table)] = "?" if number % 4 == 0 else "A"
    done = brought(team, table)
    assert done.returncode == 0, done.stderr
    done = team.cli("report")
    assert done.returncode == 0, done.stderr
    assert re.search(r"worst|bound|最坏|最差", done.stdout + done.stderr, re.IGNORECASE)


# The page of an item


def test_an_item_has_everything_for_its_reader(site: Site, team: Team) -> None:
    """Grades, cannot judge, personal data, the line between relevant and not, the guide and a way to open items."""
    browser, row = enters(site, team.token(WANG)), team.rows(WANG)[0]
    page = opened(browser, row)
    for grade in GRADES:
        assert page.grade(grade)
    assert page.has(r"cannot judge|无法判断")
    assert page.has(r"personal data|个人信息")
    assert page.has(r"not relevant|(?<!\w)not(?!\w)|不相关")
    assert page.has(r"guide|指南|说明")
    drawers = [
        node
        for node in page.root.all()
        if node.tag in ("details", "dialog", "aside") or "popover" in node.attrs or "guide" in str(node.attrs).lower()
    ]
    assert [node for node in drawers if len(node.text()) > 100], "the guide is on the page of the item"


def test_everything_has_a_key(site: Site, team: Team) -> None:
    """Grades, X for cannot judge, P for personal data, U to undo and N for a note are keys that the page names."""
    for key in ("X", "P", "U", "N", *GRADES):
        page = opened(enters(site, team.token(WANG)), team.rows(WANG)[0])
        marked = [value for node in page.root.all() for value in node.attrs.get("aria-keyshortcuts", "").split()]
        named = [node.text() for node in page.root.all("kbd")]
        assert key in marked or key in named


@pytest.mark.parametrize(("language", "words"), [("en", "Cannot judge"), ("zh", "无法判断")])
def test_a_page_is_in_the_readers_language(site: Site, team: Team, language: str, words: str) -> None:
    """What the browser prefers decides the language of buttons and guide, not the texts that are read."""
    page = opened(enters(site, team.token(WANG), language=language), team.rows(WANG)[0])
    assert page.root.all("html")[0].attrs.get("lang", "").startswith(language)
    assert words.lower() in page.text.lower()


def test_markup_in_texts_ids_and_notes_is_text(site: Site, team: Team) -> None:
    """Texts, ids and notes with markup are shown as they are written, to assessor, adjudicator and lead."""
    browsers = {name: enters(site, team.token(name)) for name in PERSONS}
    odd = [row for row in team.rows() if SCRIPT in team.texts(row)[1]][:3]
    assert odd
    for row in odd:
        page = opened(browsers[WANG], row)
        assert "<script>alert" not in page.html
        assert "alert(46)" in page.text
        assert "{{7*7}}" in page.text
        assert graded(browsers[WANG], row, "S", note=SCRIPT).status < 400
        assert graded(browsers[LI], row, "D", note=f"'{SCRIPT}").status < 400
        assert "<script>alert" not in opened(browsers[WANG], row).html
    shown = [
        decided(enters(site, team.token("chen", "--role", "adjudicator"))),
        enters(site, team.token("boss", "--role", "lead")).get("/review/progress"),
    ]
    for page in shown:
        assert page.status == 200
        for node in page.root.all("img"):
            assert node.attrs.get("src") != "x"
        assert "<script>alert" not in page.html
        assert "onerror=alert(46)>" not in page.html.replace("&gt;", "")


def test_the_name_of_a_person_is_text(site: Site, team: Team) -> None:
    """A name with markup, if it is taken, is shown as it is written."""
    done = team.cli("invite", "<i>x</i>", "--role", "lead", "--json")
    assert "No such command" not in done.stdout + done.stderr
    lead = enters(site, team.token("boss", "--role", "lead"))
    assert "<i>x</i>" not in lead.get("/review/progress").html


def test_every_page_forbids_what_others_could_bring_in(site: Site, team: Team) -> None:
    """Pages of a review run nothing from elsewhere, fit in no frame, and send no referrer."""
    for path in ("/enter", "/review", "/nothing", "/review/progress"):
        page = enters(site, team.token("boss", "--role", "lead")).raw("GET", path)
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cache-control"] == "no-store"
        for node in page.root.all("script", "link", "img"):
            source = node.attrs.get("src") or node.attrs.get("href") or ""
            assert urlsplit(source).netloc in ("", site.host)


@pytest.mark.parametrize("name", ["yes-no", "seven"])
def test_other_scales_are_reviewed_by_a_team(tmp_path: Path, name: str) -> None:
    """Answers that are no letters are given, conflict and are flagged as the five grades are."""
    case = scale_runs.CASES[name]
    scale_runs.make(tmp_path, case)
    team = Team(tmp_path, run_name="runs/tiny").draw(24, WANG, "0")
    labels = json.loads((team.run / "judge" / "scale.json").read_text(encoding="utf-8"))["scale"]["labels"]
    token = team.token(WANG)
    first, second, *_ = team.rows(WANG)
    with serving(tmp_path, run="runs/tiny") as site:
        one, other = enters(site, token), enters(site, token)
        old = opened(other, first)
        assert graded(one, first, labels[0]).status < 400
        answer = other.press(old, old.grade(labels[-1]))
        assert answer.status == 409
        assert labels[0] in answer.text
        assert flagged(one, second, "cannot_judge", "query").status < 400
    assert team.answers(WANG)[first] == labels[0]
    assert [each["flag"] for each in team.flags()] == ["cannot_judge"]


# Deciding


def disputed(site: Site, team: Team, many: int = 3) -> list[str]:
    """Have two people disagree on some items, and agree with the panel on no others."""
    browsers = {name: enters(site, team.token(name)) for name in PERSONS}
    rows = team.rows()[:many]
    for row in rows:
        assert graded(browsers[WANG], row, "S", note="note-of-wang").status < 400
        assert graded(browsers[LI], row, "D").status < 400
    return rows


def test_what_people_disagree_on_is_decided_on_the_page(site: Site, team: Team) -> None:
    """An adjudicator sees what was said and by nobody, neither judge nor label, decides, and it is kept as before."""
    rows = disputed(site, team)
    browser = enters(site, team.token("chen", "--role", "adjudicator"))
    for number in range(len(rows)):
        page = decided(browser)
        assert page.grade("A"), page.text[:500]
        assert not [word for word in (*PERSONS, *JUDGES) if word in page.html]
        assert page.names("S")
        assert page.names("D")
        assert "note-of-wang" in page.text
        assert browser.press(page, page.grade("A")).status < 400
        assert len(team.answers("adjudicated")) == number + 1
    assert team.answers("adjudicated") == dict.fromkeys(rows, "A")
    assert decided(browser).grade("A") is None
    assert team.data("report")["adjudicated"] == len(rows)
    assert {line["answer"] for line in team.lines(WANG)} == {"S"}, "what people said stays"


def test_names_are_revealed_after_the_final_answer(site: Site, team: Team) -> None:
    """Who said what, and the judges, are shown once an item is decided, and the log has it."""
    (row,) = disputed(site, team, 1)
    browser = enters(site, team.token("chen", "--role", "adjudicator"))
    page = decided(browser)
    early = page.find(pattern=r"reveal|显示|揭")
    if early and early.value not in GRADES:
        early_page = browser.press(page, early)
        assert not [judge for judge in JUDGES if judge in early_page.html]
    page = decided(browser)
    after = browser.press(page, page.grade("A"))
    assert after.status < 400
    shown = [after] if after.status == 200 else [browser.get(browser.led(after))]
    shown += [browser.get(f"/review/decide/{row}")]
    for each in list(shown):
        choice = each.find(pattern=r"reveal|显示|揭")
        if choice:
            answer = browser.press(each, choice)
            shown.append(answer if answer.status == 200 else browser.get(browser.led(answer)))
    assert [each for each in shown if JUDGES[0] in each.html], [each.text[:200] for each in shown]
    assert {(each["person"], each["item"]) for each in team.events("revealed")} == {("chen", row)}


def test_decisions_become_labels(site: Site, team: Team) -> None:
    """What was decided on the page is a label once `resolve` takes experts over the panel."""
    rows = disputed(site, team)
    browser = enters(site, team.token("chen", "--role", "adjudicator"))
    for _ in rows:
        page = decided(browser)
        assert browser.press(page, page.grade("D")).status < 400
    ran(team.folder, "resolve", "--set", "resolve.policy=expert-over-panel", "--run", RUN)
    survey = pl.read_parquet(team.review / "survey.parquet").filter(pl.col("row_id").is_in(rows))
    verdicts = pl.read_parquet(team.run / "resolve" / "verdicts.parquet").select("query_id", "doc_id", "verdict")
    found = {(query, doc): verdict for query, doc, verdict in verdicts.iter_rows()}
    assert {found[tuple(ids)] for ids in survey["ids"].to_list()} == {"not relevant"}


def test_the_report_begins_with_what_to_do(team: Team) -> None:
    """The first line says whether to publish, and why, as a share of the positives; today too."""
    for name in PERSONS:
        table = sheet(team, name)
        for row in table[1:]:
            row[column(table)] = "D"
        assert brought(team, table, f"{name}.csv").returncode == 0
    first = team.cli("report").stdout.splitlines()[0]
    assert re.search(r"^sample expert: do not publish: .*\b0 ?%.* of the panel's positives", first), first


# Hosts, origins, proxies


HOSTS = ["evil.example", "127.0.0.1.evil.example", "192.168.0.1", "", "localhost.evil:80"]


def test_a_foreign_host_is_refused(site: Site, team: Team) -> None:
    """A name that only points here neither shows a page nor takes a token."""
    for host in HOSTS:
        token, browser = team.token(WANG), Browser(site)
        for path in ("/enter", "/review"):
            assert browser.raw("GET", path, headers={"Host": host}).status in (400, 403)
        headers = {"Host": host, "Origin": f"http://{host}"}
        answer = browser.raw("POST", "/enter", {"token": token}, headers)
        assert answer.status in (400, 403)
        assert not is_inside(browser, team.rows(WANG)[0])
        assert is_inside(enters(site, token), team.rows(WANG)[0])


ORIGINS: list[dict[str, str | None]] = [
    {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://evil.example", "X-Forwarded-Host": "evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
]


def test_what_another_site_sends_is_not_saved(site: Site, team: Team) -> None:
    """A form that another site sends in a reader's browser grades, flags and enters nothing."""
    browser, row = enters(site, team.token(WANG)), team.rows(WANG)[0]
    token = team.token(WANG)
    page = opened(browser, row)
    for headers in ORIGINS:
        assert browser.press(page, page.grade("S"), headers).status == 403
        assert team.answers(WANG) == {}
        stranger = Browser(site)
        assert stranger.raw("POST", "/enter", {"token": token}, headers).status == 403
        assert not is_inside(stranger, row)
    assert graded(browser, row, "S").status < 400


def test_a_form_without_its_hidden_fields_is_not_saved(site: Site, team: Team) -> None:
    """An answer needs what its page has hidden in it; from one's own site alone is not enough."""
    browser, row = enters(site, team.token(WANG)), team.rows(WANG)[0]
    page = opened(browser, row)
    choice = page.grade("S")
    assert choice is not None
    hidden = page.hidden(choice.form)
    assert hidden
    filled = {**page.filled(choice.form), choice.name: choice.value}
    bare = {name: value for name, value in filled.items() if name not in hidden or name == choice.name}
    made_up = {name: "x" if name in hidden and name != choice.name else value for name, value in filled.items()}
    for fields in (bare, made_up):
        assert browser.raw("POST", page.action(choice.form), fields).status >= 400
        assert team.answers(WANG) == {}
    assert browser.press(page, choice).status < 400


@pytest.fixture
def proxied(team: Team) -> Iterator[Site]:
    """Return a server that is behind a proxy of https."""
    team.invite("boss", "--role", "lead")
    with serving(team.folder, public=PUBLIC) as running:
        yield running


def attributes(line: str) -> set[str]:
    return {part.strip().lower() for part in line.split(";")[1:]}


def test_behind_a_proxy_a_reader_enters_and_answers(proxied: Site, team: Team) -> None:
    """With `--public-url` host and origin are the public ones, and cookies are Secure, HttpOnly and Lax."""
    browser, answer = entered_as(proxied, team.token(WANG))
    assert answer.status in (200, 302, 303), answer.text[:300]
    assert answer.cookies
    for line in answer.cookies:
        assert line.startswith("__Host-")
        assert {"secure", "httponly", "samesite=lax", "path=/"} <= attributes(line)
    assert graded(browser, team.rows(WANG)[0], "A").status < 400
    assert team.answers(WANG) == {team.rows(WANG)[0]: "A"}
    for path, _ in browser.get("/review").links:
        assert urlsplit(path).scheme in ("", "https")


FOREIGN_HOSTS: list[dict[str, str | None]] = [
    {"Host": "evil.example"},
    {"Host": "review.hospital.cn.evil.example"},
    {"Host": "evil.example", "X-Forwarded-Host": "review.hospital.cn"},
    {"Host": "evil.example", "Forwarded": "host=review.hospital.cn;proto=https"},
]


def test_behind_a_proxy_no_other_host_is_served(proxied: Site, team: Team) -> None:
    """Only the public host is answered; headers of forwarding do not make another one good."""
    for headers in FOREIGN_HOSTS:
        browser = enters(proxied, team.token(WANG))
        for path in ("/enter", "/review", f"/review/{team.rows(WANG)[0]}"):
            assert browser.raw("GET", path, headers=headers).status in (400, 403)


FOREIGN_ORIGINS: list[dict[str, str | None]] = [
    {"Origin": "http://review.hospital.cn"},
    {"Origin": "https://review.hospital.cn:8443"},
    {"Origin": "https://evil.example"},
    {"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"},
]


def test_behind_a_proxy_no_other_origin_is_taken(proxied: Site, team: Team) -> None:
    """A form comes from the public origin, scheme and port included."""
    browser, row = enters(proxied, team.token(WANG)), team.rows(WANG)[0]
    page = opened(browser, row)
    for headers in FOREIGN_ORIGINS:
        assert browser.press(page, page.grade("S"), headers).status == 403
    assert team.answers(WANG) == {}
    assert browser.press(page, page.grade("S")).status < 400


def test_forwarded_headers_change_nothing(proxied: Site, team: Team) -> None:
    """What a proxy, or whoever comes through it, says in headers of forwarding is neither believed nor shown."""
    headers: dict[str, str | None] = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-For": "6.6.6.6",
        "X-Forwarded-Prefix": "/evil",
        "Forwarded": "for=6.6.6.6;host=evil.example;proto=http",
    }
    browser = Browser(proxied)
    assert browser.raw("GET", "/enter", headers=headers).status == 200
    answer = browser.raw("POST", "/enter", {"token": team.token(WANG)}, headers)
    assert answer.status in (200, 302, 303)
    assert all("secure" in attributes(line) for line in answer.cookies)
    page = browser.get(f"/review/{team.rows(WANG)[0]}", headers)
    assert page.status == 200
    assert "evil.example" not in page.html + answer.html + str(dict(answer.headers))
    assert browser.press(page, page.grade("S"), headers).status < 400
    assert "6.6.6.6" not in event_text(team)


def test_the_shared_address_is_no_key_behind_a_proxy(team: Team) -> None:
    """The secret of the page on this machine lets nobody in where `--public-url` is set."""
    with serving(team.folder) as site:
        shared = re.findall(r"\?token=([\w-]+)", site.said)
        assert shared, "on loopback without links the page is opened as before"
    with serving(team.folder, public=PUBLIC) as site:
        for path in ("/", "/review", "/enter"):
            browser = Browser(site)
            page = browser.get(f"{path}?token={shared[0]}")
            assert WANG not in page.text
            assert not is_inside(browser, team.rows(WANG)[0])
        browser, _ = entered_as(site, shared[0])
        assert not is_inside(browser, team.rows(WANG)[0])


def test_behind_a_path_of_a_proxy_a_reader_enters(team: Team) -> None:
    """With a path in `--public-url` cookies are `__Secure-` ones of that path."""
    token = team.token(WANG)
    with serving(team.folder, public=f"{PUBLIC}/curate") as site:
        browser = Browser(site)
        tried = {path: browser.raw("GET", path).status for path in ("/curate/enter", "/enter")}
        path = next((path for path, status in tried.items() if status == 200), "")
        assert path, tried
        answer = browser.raw("POST", path, {"token": token})
        assert answer.status in (200, 302, 303), answer.text[:300]
        assert answer.cookies
        for line in answer.cookies:
            assert line.startswith("__Secure-")
            assert {"secure", "httponly", "samesite=lax"} <= attributes(line)
            assert {"path=/curate", "path=/curate/"} & attributes(line)
        if answer.status != 200:
            assert urlsplit(answer.headers["location"]).path.startswith("/curate/")


def test_a_public_url_that_is_none_starts_no_server(team: Team) -> None:
    """A public address has a scheme and a host; what lacks one is refused in a sentence."""
    for url in ("review.hospital.cn", "https://"):
        with pytest.raises(AssertionError, match="takes no connections") as refused:
            Site(team.folder, public=url).stop()
        said = str(refused.value)
        assert "public-url" in said
        assert "No such option" not in said
        assert "Traceback" not in said


def test_the_docs_have_the_configuration_of_nginx() -> None:
    """The docs show a configuration that hands on the host, writes no log of addresses and compresses nothing."""
    kept = [path for path in sorted((ROOT / "docs").rglob("*")) if path.suffix in (".md", ".conf")]
    pages = [path.read_text(encoding="utf-8") for path in kept]
    (page, *_) = [text for text in pages if "proxy_pass" in text] or [""]
    for line in ("proxy_pass http://127.0.0.1:", "proxy_set_header Host $host", "gzip off", "access_log off"):
        assert line in page, line
    assert [text for text in pages if "--public-url" in text]


# Two clinicians, an adjudicator and a lead


def begun(page: browsing.Page, link: str) -> None:
    """Open a link in a real browser and press Start."""
    page.browser.get(link)
    page.wait("document.querySelector('form button, form input[type=submit]') !== null")
    buttons = page.browser.find_elements("css selector", "form button, form input[type=submit]")
    named = [
        each for each in buttons if re.search("start|开始", f"{each.text} {each.get_attribute('value')}", re.IGNORECASE)
    ]
    (named or buttons)[0].click()
    page.wait("location.pathname.startsWith('/review')")
    if not page.see("document.querySelector('form [value=S]') !== null"):
        page.browser.find_element("css selector", "main a[href*='/review/r']").click()
    page.wait("document.querySelector('form [value=S]') !== null")


def reads(page: browsing.Page, team: Team, person: str, grade: Callable[[int], str], tap: bool) -> None:
    """Grade all items, by keys or with a finger."""
    for number in range(len(team.rows(person))):
        before = len(team.answers(person))
        page.see("document.querySelector('form [value=S]').closest('form').dataset.seen = 'yes'")
        if tap:
            page.browser.find_element("css selector", f"form [value={grade(number)}]").click()
        else:
            page.keys(grade(number).lower())
        ends = time.monotonic() + 120
        while len(team.answers(person)) == before and time.monotonic() < ends:
            time.sleep(0.02)
        assert len(team.answers(person)) == before + 1, number
        if number + 1 < len(team.rows(person)):
            page.wait("document.querySelector('form [value=S]')?.closest('form').dataset.seen === undefined")


def test_two_clinicians_read_forty_items_at_once_and_it_ends_in_labels(
    team: Team, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One by keyboard, one on a phone; an adjudicator decides on the page, `resolve` takes it, the lead follows."""
    need(browsing.BROWSER.exists() and browsing.DRIVER.exists(), "chromium, or chromium-driver,")
    tokens = {name: team.token(name) for name in PERSONS}
    profiles = tmp_path_factory.mktemp("profiles")
    with (
        serving(team.folder) as site,
        browsing.browsing(profiles / "one") as one,
        browsing.browsing(profiles / "other") as other,
        ThreadPoolExecutor(2) as both,
    ):
        one.size(1280, 800)
        other.size(390, 844, phone=True)
        begun(one, f"{site.origin}/enter#{tokens[WANG]}")
        begun(other, f"{site.origin}/enter#{tokens[LI]}")
        jobs = [
            both.submit(reads, one, team, WANG, lambda number: "A", tap=False),
            both.submit(reads, other, team, LI, lambda number: "D" if number % 8 == 0 else "A", tap=True),
        ]
        for job in jobs:
            job.result()
        assert {len(team.answers(name)) for name in PERSONS} == {40}
        assert set(team.answers(WANG).values()) == {"A"}
        lead = enters(site, team.token("boss", "--role", "lead"))
        assert lead.get("/review/progress").names("40")
        browser = enters(site, team.token("chen", "--role", "adjudicator"))
        for _ in range(60):
            page = decided(browser)
            if page.grade("A") is None:
                break
            assert browser.press(page, page.grade("S")).status < 400
    differ = {row for row, given in team.answers(LI).items() if given == "D"}
    assert len(differ) == 5
    assert differ <= set(team.answers("adjudicated"))
    ran(team.folder, "resolve", "--set", "resolve.policy=expert-over-panel", "--run", RUN)
    verdicts = pl.read_parquet(team.run / "resolve" / "verdicts.parquet").select("query_id", "doc_id", "verdict")
    found = {(query, doc): verdict for query, doc, verdict in verdicts.iter_rows()}
    survey = pl.read_parquet(team.review / "survey.parquet")
    assert {found[ids[0], ids[1]] for ids in survey["ids"].to_list()} == {"relevant"}
    assert len([each for each in team.events("answered") if each["person"] == WANG]) == 40
