"""The review page over real connections: who may pass, and that nothing that was said is lost."""

import json
import re
import socket
import stat
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from curate.core.errors import ConfigError, DataError, MissingExtra, UserError
from curate.review import Answer, Desk, Sample
from curate.review import desk as answers
from curate.system.resources import template
from curate.web import serve
from curate.web.guard import HEADERS
from curate.web.review_pages import keys, mark, noted
from curate.web.serving import address, answers_to, kept_token, loopback
from tests.support.reviewing import TEXTS, Server, sample, served

ZHANG, LI = "张医生", "李医生"
NASTY = ("\"quotes\" & 'more' <b>", '<script>alert(1)</script><img src=x onerror=alert(1)> "quotes"')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("reviews") / "web"
    sample(folder, [*TEXTS, NASTY], (ZHANG, LI))
    with served(folder) as running:
        yield running


@pytest.fixture
def desk(server: Server) -> Desk:
    """Return the desk of the served sample, nothing answered."""
    for file in (server.folder / "answers").glob("*"):
        file.unlink()
    return Desk(Sample.load(server.folder))


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """Return a browser's stand-in that has entered by the address."""
    with fresh(server) as opened:
        assert opened.get(server.address).status_code == 303
        yield opened


def fresh(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.origin, headers={"Origin": server.origin}, trust_env=False, timeout=120)


def hidden(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def opened(client: httpx.Client, row_id: str, person: str = ZHANG) -> dict[str, str]:
    """Return what the page of a row sends back whatever is pressed."""
    page = client.get(f"/review/by/{person}/{row_id}")
    assert page.status_code == 200
    return {**hidden(page.text), "note": ""}


def sent(client: httpx.Client, row_id: str, fields: dict[str, str], person: str = ZHANG) -> httpx.Response:
    return client.post(f"/review/by/{person}/{row_id}", data=fields)


def ids(desk: Desk) -> list[str]:
    return [row.row_id for row in desk.rows(ZHANG)]


def test_the_secret_in_the_address_becomes_a_cookie(server: Server) -> None:
    with fresh(server) as client:
        entered = client.get(server.address)
        assert (entered.status_code, entered.headers["location"]) == (303, "/review")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(entered.headers["set-cookie"].split("; "))
        token = server.address.partition("=")[2]
        assert token not in entered.headers["set-cookie"]
        assert client.get("/review").status_code == 200


def test_a_link_on_another_site_leads_in_too(server: Server) -> None:
    with fresh(server) as client:
        entered = client.get(server.address, headers={"Sec-Fetch-Site": "cross-site"})
        assert entered.status_code == 200
        assert '<meta http-equiv="refresh" content="0;url=/review">' in entered.text
        assert client.get("/review").status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/review", "/?token=", "/?token=wrong", f"/review/by/{ZHANG}", "/review/guide", "/nothing"]
)
def test_nobody_passes_without_the_secret(server: Server, path: str) -> None:
    with fresh(server) as client:
        refused = client.get(path)
        assert refused.status_code == 403
        assert "?token=" in refused.text
        assert "curate review serve" in refused.text
        assert "{command}" not in client.get(path, headers={"Host": "evil.example"}).text
        assert ZHANG not in refused.text
        assert "set-cookie" not in refused.headers


def test_a_cookie_that_was_made_up_is_none(server: Server, desk: Desk, client: httpx.Client) -> None:
    (name, value), page = next(iter(client.cookies.items())), ids(desk)[0]
    with fresh(server) as other:
        for made_up in ("", "x", value[:-1], opened(client, page)["proof"]):
            assert other.get("/review", headers={"Cookie": f"{name}={made_up}"}).status_code == 403
        assert other.get("/review", headers={"Cookie": f"{name}={value}"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.1", "localhost.", "[::1", ""])
def test_a_name_that_only_points_here_is_refused(client: httpx.Client, host: str) -> None:
    assert client.get("/review", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1", "[::1]:80"])
def test_a_tunnel_may_end_at_another_port(client: httpx.Client, host: str) -> None:
    assert client.get("/review", headers={"Host": host}).status_code == 200


def test_every_response_has_the_headers(server: Server, client: httpx.Client) -> None:
    with fresh(server) as stranger:
        responses = [
            stranger.get("/review"),
            stranger.get(server.address),
            stranger.get("/review", headers={"Host": "evil"}),
        ]
    paths = ["/review", "/review/guide", "/nothing", "/static/web.js", "/static/nothing", f"/review/by/{ZHANG}"]
    responses += [client.get(path) for path in paths]
    assert sorted({response.status_code for response in responses}) == [200, 303, 403, 404]
    for response in responses:
        assert {name: response.headers.get(name) for name in HEADERS} == HEADERS
        assert "server" not in response.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_what_another_page_sends_changes_nothing(desk: Desk, client: httpx.Client, headers: dict[str, str]) -> None:
    row_id = ids(desk)[0]
    fields = {**opened(client, row_id), "answer": "S"}
    assert client.post(f"/review/by/{ZHANG}/{row_id}", data=fields, headers=headers).status_code == 403
    assert desk.said(ZHANG) == {}


def test_a_form_without_the_pages_proof_changes_nothing(desk: Desk, client: httpx.Client) -> None:
    row_id, cookie = ids(desk)[0], next(iter(client.cookies.values()))
    for proof in ({}, {"proof": ""}, {"proof": "é"}, {"proof": cookie}):
        assert sent(client, row_id, {**proof, "answer": "S"}).status_code == 403
    assert desk.said(ZHANG) == {}


def test_a_form_works_without_scripts(desk: Desk, client: httpx.Client) -> None:
    first, second, *_ = ids(desk)
    client.headers.update({"Origin": "null", "Sec-Fetch-Site": "same-origin"})  # as a browser sends a plain form
    went = sent(client, first, {**opened(client, first), "answer": "A", "note": "一行\r\n二行 "})
    assert went.status_code == 303
    assert went.headers["location"].endswith(f"/{second}?saved=A")
    said = desk.said(ZHANG)[first]
    assert (said.answer, said.note, said.source) == ("A", "一行\n二行", "page")
    assert "上一条已保存：A" in client.get(went.headers["location"]).text
    page = client.get(f"/review/by/{ZHANG}/{first}").text
    assert "一行\n二行</textarea>" in page
    assert re.findall(r'value="(\w)" data-key="\w" aria-keyshortcuts="\w" aria-pressed="true"', page) == ["A"]


def test_one_goes_on_at_the_first_open_row(desk: Desk, client: httpx.Client) -> None:
    rows = ids(desk)
    for row_id in (rows[0], rows[1], rows[3]):
        sent(client, row_id, {**opened(client, row_id), "answer": "B"})
    assert client.get(f"/review/by/{ZHANG}").headers["location"].endswith(rows[2])
    again = sent(client, rows[0], {**opened(client, rows[0]), "answer": "C"})
    assert again.headers["location"].endswith(f"{rows[2]}?saved=C")
    skipping = sent(client, rows[2], {**opened(client, rows[2]), "answer": "C"})
    assert skipping.headers["location"].endswith(f"{rows[4]}?saved=C")
    assert f"已评 4 / {len(rows)}" in client.get("/review").text


def test_moving_keeps_a_note_and_gives_no_grade(desk: Desk, client: httpx.Client) -> None:
    rows = ids(desk)
    went = sent(client, rows[0], {**opened(client, rows[0]), "go": "next"})
    assert went.headers["location"] == httpx.URL(f"/review/by/{ZHANG}/{rows[1]}").raw_path.decode()
    assert desk.said(ZHANG) == {}
    sent(client, rows[1], {**opened(client, rows[1]), "go": "previous", "note": "无法判断"})
    assert (desk.said(ZHANG)[rows[1]].answer, desk.said(ZHANG)[rows[1]].note) == (None, "无法判断")
    assert sent(client, rows[0], {**opened(client, rows[0]), "go": "previous"}).headers["location"].endswith(rows[0])
    assert "仅备注或标记 1" in client.get("/review").text


def test_the_end_names_what_has_a_note_only(desk: Desk, client: httpx.Client) -> None:
    rows = ids(desk)
    desk.record(ZHANG, [Answer(row_id, "D", source="page") for row_id in rows[1:]])
    went = sent(client, rows[0], {**opened(client, rows[0]), "go": "next", "note": "无法判断"})
    assert went.status_code == 303
    done = client.get(f"/review/by/{ZHANG}")
    assert done.status_code == 200
    assert rows[0] in done.text
    back = client.post(f"/review/by/{ZHANG}", data={**hidden(done.text), "undo": rows[-1]})
    assert back.headers["location"].endswith(f"/{rows[-1]}?undone=D")
    assert client.get(f"/review/by/{ZHANG}").headers["location"].endswith(rows[-1])


def test_undo_takes_back_the_answers_of_the_page_one_by_one(desk: Desk, client: httpx.Client) -> None:
    rows = ids(desk)
    desk.record(ZHANG, [Answer(rows[5], "S", source="zhang.csv")])
    for row_id, grade in ((rows[0], "A"), (rows[1], "B"), (rows[0], "C")):
        sent(client, row_id, {**opened(client, row_id), "answer": grade, "note": "备注"})
    for expected, grade in ((rows[0], "C"), (rows[1], "B")):
        page = client.get(f"/review/by/{ZHANG}/{rows[2]}").text
        assert f'name="undo" value="{expected}"' in page
        for _ in range(2):  # a request that is sent again takes back no more
            sent(client, rows[2], {**hidden(page), "note": "", "undo": expected})
        assert (desk.said(ZHANG)[expected].answer, desk.said(ZHANG)[expected].note) == (None, "备注"), grade
    assert 'name="undo" value=""' in client.get(f"/review/by/{ZHANG}/{rows[2]}").text
    assert desk.said(ZHANG)[rows[5]].answer == "S"


def test_of_two_tabs_the_second_is_asked_and_no_note_is_wiped(desk: Desk, client: httpx.Client) -> None:
    row_id = ids(desk)[0]
    one, other = opened(client, row_id), opened(client, row_id)
    sent(client, row_id, {**one, "answer": "A", "note": "第一个标签页"})
    asked = sent(client, row_id, {**other, "answer": "B"})
    assert asked.status_code == 409
    assert "保留 A" in asked.text
    assert "改为 B" in asked.text
    assert desk.said(ZHANG)[row_id].answer == "A"
    sent(client, row_id, {**hidden(asked.text), "note": "第一个标签页", "answer": "B"})
    assert (desk.said(ZHANG)[row_id].answer, desk.said(ZHANG)[row_id].note) == ("B", "第一个标签页")
    assert [answer.answer for answer in answers.history(desk.sample.folder, ZHANG)] == ["A", "B"]
    assert sent(client, row_id, {**other, "note": "另一条备注", "go": "next"}).status_code == 409
    sent(client, row_id, {**opened(client, row_id), "answer": "B", "note": ""})
    assert desk.said(ZHANG)[row_id].note == ""


def test_a_second_visit_by_the_address_leaves_open_pages_working(
    server: Server, desk: Desk, client: httpx.Client
) -> None:
    row_id = ids(desk)[0]
    fields = opened(client, row_id)
    client.get(server.address)
    assert sent(client, row_id, {**fields, "answer": "A"}).status_code == 303


def test_moving_in_one_tab_never_undoes_a_grade_of_another(server: Server, desk: Desk, client: httpx.Client) -> None:
    rows, fields = ids(desk), opened(client, ids(desk)[0])
    with ExitStack() as stack, ThreadPoolExecutor(4) as people:
        tabs = [stack.enter_context(fresh(server)) for _ in range(4)]
        for tab in tabs:
            tab.get(server.address)
        for grade in "ABCDS":
            for row_id in rows:
                grading = {**opened(client, row_id), "answer": grade}
                sending = [{**fields, "go": "next"}, grading, *2 * [{**fields, "go": "next"}]]
                assert {each.status_code for each in people.map(sent, tabs, [row_id] * 4, sending)} == {303}
            assert [desk.said(ZHANG)[row_id].answer for row_id in rows] == [grade] * len(rows)


def test_everybody_has_answers_of_their_own(desk: Desk, client: httpx.Client) -> None:
    row_id = ids(desk)[0]
    sent(client, row_id, {**opened(client, row_id), "answer": "A"})
    sent(client, row_id, {**opened(client, row_id, LI), "answer": "D"}, LI)
    assert (desk.said(ZHANG)[row_id].answer, desk.said(LI)[row_id].answer) == ("A", "D")


@pytest.mark.parametrize(
    "path", [f"/review/by/{ZHANG}/r00001-zzzzzz", "/review/by/nobody", "/review/by/adjudicated", "/static/words.yaml"]
)
def test_what_is_not_there_is_said_to_be_missing(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_form_that_cannot_be_kept_is_refused(desk: Desk, client: httpx.Client) -> None:
    row_id = ids(desk)[0]
    fields = opened(client, row_id)
    assert sent(client, row_id, {**fields, "answer": "X"}).status_code == 400
    assert sent(client, row_id, {**fields, "answer": "A", "note": "x" * 70_000}).status_code == 413
    assert sent(client, "r00001-zzzzzz", {**fields, "answer": "A"}).status_code == 404
    assert sent(client, row_id, {**fields, "undo": "r00001-zzzzzz"}).status_code == 404
    assert desk.said(ZHANG) == {}


def test_texts_stay_texts(desk: Desk, client: httpx.Client) -> None:
    page = client.get(f"/review/by/{ZHANG}/{ids(desk)[-1]}").text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert" in page
    assert re.findall(r"<script[^>]*>", page) == ['<script src="/static/web.js" defer>']
    assert "style=" not in page


def test_a_failure_is_said_and_logs_hold_no_text(server: Server, desk: Desk, client: httpx.Client) -> None:
    row_id = ids(desk)[0]
    fields = {**opened(client, row_id), "answer": "A", "note": "秘密"}
    folder = server.folder / "answers"
    folder.mkdir(exist_ok=True)
    folder.rmdir()
    folder.write_text("", encoding="ascii")  # as if the disk had failed
    try:
        failed = sent(client, row_id, fields)
    finally:
        folder.unlink()
        folder.mkdir()
    assert failed.status_code == 500
    assert {name: failed.headers.get(name) for name in HEADERS} == HEADERS
    assert "可能没有保存" in failed.text
    (folder / f"{ZHANG}.jsonl").write_text("what is this\n", encoding="utf-8")
    with fresh(server) as again:  # after a failure the server closes the connection
        again.get(server.address)
        broken = again.get(f"/review/by/{ZHANG}")
    assert broken.status_code == 500
    assert "line 1" in broken.text
    assert "Error" in server.log
    assert not any(text in server.log for text in ("秘密", *TEXTS[0]))


def test_a_restart_leaves_address_and_sessions(server: Server, desk: Desk, client: httpx.Client) -> None:
    before = server.address
    fields = opened(client, ids(desk)[0])
    server.kill()
    server.start()
    assert server.address == before
    assert sent(client, ids(desk)[0], {**fields, "answer": "S"}).status_code == 303
    assert stat.S_IMODE((server.folder / "page.token").stat().st_mode) == 0o600


def test_the_token_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    token = kept_token(tmp_path / "page.token")
    assert len(token) >= 32
    (tmp_path / "page.token").chmod(0o644)
    assert kept_token(tmp_path / "page.token") == token
    assert stat.S_IMODE((tmp_path / "page.token").stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "reviews.example"])
def test_others_may_reach_it_only_if_that_is_said(tmp_path: Path, host: str) -> None:
    desk = Desk(sample(tmp_path / "s", TEXTS))
    with pytest.raises(ConfigError, match="--allow-remote"):
        serve(desk, host=host, port=0, tell=pytest.fail)
    assert not (tmp_path / "s" / "page.token").exists()


def test_a_port_that_is_taken_is_the_users_to_change(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--port"):
        serve(Desk(sample(tmp_path / "s", TEXTS)), port=server.port, tell=pytest.fail)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"curate-ir\[review\]"):
        serve(Desk(sample(tmp_path / "s", TEXTS)), tell=pytest.fail)


def test_where_the_page_may_be_reached() -> None:
    assert [loopback(host) for host in ("127.0.0.1", "127.0.0.9", "::1", "localhost")] == [True] * 4
    assert [loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.example")] == [False] * 4
    asked = ("127.0.0.1", "::1", "localhost", "10.0.0.1", "reviews.example", socket.gethostname().lower())
    assert [name for name in asked if answers_to("127.0.0.1", name)] == list(asked[:3])
    assert [name for name in asked if answers_to("10.0.0.1", name)] == list(asked[:4])
    assert [name for name in asked if answers_to("Reviews.example", name)] == [*asked[:3], asked[4]]
    assert [name for name in asked if answers_to("0.0.0.0", name)] == [*asked[:4], asked[5]]
    assert address("::1", 80, "t") == "http://[::1]:80/?token=t"


def test_keys_are_letters_where_they_can_be() -> None:
    assert keys(["S", "A"]) == {"S": "S", "A": "A"}
    assert keys(["U", "A"]) == {"U": "1", "A": "2"}
    assert keys(["yes", "no"]) == {"yes": "1", "no": "2"}


def test_a_note_that_was_not_touched_is_left_as_it_is() -> None:
    assert noted("old", mark("old"), "new from elsewhere") == "new from elsewhere"
    assert noted("typed", mark("old"), "new from elsewhere") == "typed"
    assert noted("", mark("old"), "old") == ""


def test_both_languages_have_the_same_words() -> None:
    def shape(value: Any) -> Any:
        return {key: shape(each) for key, each in value.items()} if isinstance(value, dict) else None

    known = yaml.safe_load(template("web/templates/words.yaml"))
    assert shape(known["zh"]) == shape(known["en"])


def test_the_page_speaks_the_samples_language(tmp_path: Path) -> None:
    sample(tmp_path / "s", TEXTS, ("Ann",), language="en")
    with served(tmp_path / "s") as server, fresh(server) as client:
        client.get(server.address)
        page = client.get("/review/by/Ann", follow_redirects=True).text
    assert '<html lang="en">' in page
    assert "same subject, same intent; a direct, complete and correct answer" in page
    assert f"1 of {len(TEXTS)}" in page


def test_a_look_reads_only_what_came_since(tmp_path: Path) -> None:
    desk = Desk(sample(tmp_path / "s", TEXTS))
    rows, file = ids(desk), answers.path(tmp_path / "s", ZHANG)
    assert desk.said(ZHANG) == {}
    answers.append(tmp_path / "s", ZHANG, [Answer(rows[0], "A"), Answer(rows[1], "B"), Answer(rows[0], "C")])
    assert [(row_id, said.answer) for row_id, said in desk.said(ZHANG).items()] == [(rows[1], "B"), (rows[0], "C")]
    with file.open("a", encoding="utf-8") as stream:
        stream.write('{"row_id": "r0000')  # cut off: never acknowledged
    assert list(desk.said(ZHANG)) == [rows[1], rows[0]]
    answers.append(tmp_path / "s", ZHANG, [Answer(rows[1], None)])
    assert list(desk.said(ZHANG)) == [rows[0]]
    assert desk.said(ZHANG) == answers.Heard(tmp_path / "s", ZHANG).said()
    with file.open("a", encoding="utf-8") as stream:
        stream.write("nonsense\n")
    with pytest.raises(DataError, match=rf"line {len(file.read_text(encoding='utf-8').splitlines())}"):
        desk.said(ZHANG)
    backup = json.dumps({"row_id": rows[2], "answer": "D"}) + "\n"
    for copies in (1, 99):  # put back in the place of what was read, shorter or longer, in the same file
        file.write_text(backup * copies, encoding="utf-8")
        assert list(desk.said(ZHANG)) == [rows[2]]
    file.unlink()
    assert desk.said(ZHANG) == {}


def test_a_second_look_at_thousands_of_answers_costs_next_to_nothing(tmp_path: Path) -> None:
    desk = Desk(sample(tmp_path / "s", TEXTS * 600))
    answers.append(tmp_path / "s", ZHANG, [Answer(row_id, "A", source="page") for row_id in ids(desk)])

    def seconds() -> float:
        start = time.perf_counter()
        assert len(desk.said(ZHANG)) == 4800
        return time.perf_counter() - start

    first = seconds()
    assert min(seconds() for _ in range(5)) < first / 10
