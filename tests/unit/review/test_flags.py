"""Flags of assessors: who has to do something, what stops an export, and who reads a row instead."""

from pathlib import Path

import pytest

from curate.core.errors import ConfigError, NotFound, UserError
from curate.core.records import FILTERED
from curate.review import ADJUDICATED, Answer, Desk, flags
from curate.review.access import Access, public
from curate.system.files import frame, write_table
from tests.support.reviewing import TEXTS, sample


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a sample of a run, read by two assessors, of whom each has rows of their own."""
    drawn = sample(tmp_path / "run" / "reviews" / "expert", TEXTS[:4], ("anna", "ben"))
    alone = drawn.survey.with_columns(assessors=drawn.survey["assessors"].list.slice(0, 1))
    write_table(drawn.folder, "survey", alone)
    texts(tmp_path / "run", {})
    return Desk(type(drawn).load(drawn.folder))


def texts(run: Path, changed: dict[str, str]) -> None:
    """Write the texts of a run, those of some documents changed."""
    queries = [{"query_id": f"q{n}", "text": pair[0], "source": "s"} for n, pair in enumerate(TEXTS[:4], start=1)]
    corpus = [
        {"doc_id": f"d{n}", "title": "", "text": changed.get(f"d{n}", pair[1]), "source": "s"}
        for n, pair in enumerate(TEXTS[:4], start=1)
    ]
    for name, rows in (("queries", queries), ("corpus", corpus)):
        (run / FILTERED).mkdir(parents=True, exist_ok=True)
        write_table(run / FILTERED, name, frame(name, rows))


def test_personal_data_stops_what_leaves_until_it_is_settled(desk: Desk) -> None:
    run, row = desk.sample.folder.parents[1], desk.rows("anna")[0].row_id
    flags.stop("export", run)
    flags.raise_flag(desk, "anna", row, "personal_data")
    with pytest.raises(UserError, match=r"in 1 rows.*settle it: curate review flags --run \S+ --sample expert$"):
        flags.stop("export", run)
    assert flags.settle(desk, row, "harmless") == 1
    flags.stop("export", run)
    with pytest.raises(NotFound, match="no open flag"):
        flags.settle(desk, row, "harmless")
    flags.raise_flag(desk, "anna", row, "personal_data")
    assert len(flags.personal(run)) == 1, "a new flag is open again"


def test_masked_is_taken_once_the_texts_have_changed(desk: Desk) -> None:
    run, row = desk.sample.folder.parents[1], desk.rows("anna")[1].row_id
    flags.raise_flag(desk, "anna", row, "personal_data")
    with pytest.raises(UserError, match=r"its texts unchanged.*mask\.words"):
        flags.settle(desk, row, "masked")
    texts(run, {"d2": "[姓名]说可以。"})
    assert flags.settle(desk, row, "masked") == 1


def test_what_is_not_of_the_field_goes_to_somebody_who_has_not_read_it(desk: Desk) -> None:
    row = desk.rows("anna")[0].row_id
    flags.raise_flag(desk, "anna", row, "cannot_judge", "field")
    assert row in [each.row_id for each in desk.rows("ben")]
    readers = next(each["assessors"] for each, _, _ in desk.answered() if each["row_id"] == row)
    assert readers == ["ben"]
    assert flags.open_flags(desk)
    desk.record("ben", [Answer(row, "B")])
    assert not flags.open_flags(desk)
    assert next(final for each, _, final in desk.answered() if each["row_id"] == row) == "B"
    flags.raise_flag(desk, "ben", row, "cannot_judge", "field")
    assert [flag.to for flag in flags.of(desk) if flag.person == "ben"] == [""], "nobody is left"


def test_a_flag_is_withdrawn_by_an_answer_and_closed_by_the_adjudicator(desk: Desk) -> None:
    first, second = (row.row_id for row in desk.rows("anna")[:2])
    for row in (first, second):
        flags.raise_flag(desk, "anna", row, "cannot_judge", "text")
    desk.record("anna", [Answer(first, "A")])
    desk.record(ADJUDICATED, [Answer(second, "C")])
    assert flags.open_flags(desk) == []


@pytest.mark.parametrize(("flag", "reason"), [("cannot_judge", ""), ("cannot_judge", "tired"), ("rude", "")])
def test_other_flags_are_refused(desk: Desk, flag: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=r"is no (flag|reason)"):
        flags.raise_flag(desk, "anna", desk.rows("anna")[0].row_id, flag, reason)
    with pytest.raises(ConfigError, match="not among those"):
        flags.raise_flag(desk, "ben", desk.rows("anna")[0].row_id, "personal_data")


def test_who_reads_the_sample_does_not_adjudicate_it(desk: Desk) -> None:
    access = Access(desk)
    with pytest.raises(ConfigError, match="an assessor of the sample"):
        access.invite("anna", "adjudicator")
    with pytest.raises(ConfigError, match="no assessor of this name"):
        access.invite("carl", "assessor")
    with pytest.raises(ConfigError, match="another spelling"):
        access.invite("ANNA", "lead")


@pytest.mark.slow
def test_wrong_codes_are_counted_while_a_code_is_open_and_no_longer(desk: Desk) -> None:
    access = Access(desk)
    assert access.enter("00000000") is None
    assert not (desk.sample.folder / "access.jsonl").exists(), "no stranger makes the file grow"
    _, code = access.invite("anna", "assessor", code=True)
    wrong = f"{(int(code) + 1) % 10**8:08}"
    for _ in range(5):
        assert access.enter(wrong) is None
    size = (desk.sample.folder / "access.jsonl").stat().st_size
    assert access.enter(code) is None
    assert access.enter(wrong) is None
    assert (desk.sample.folder / "access.jsonl").stat().st_size == size


@pytest.mark.parametrize("url", ["http://a.example", "a.example", "https://", "https://u@a.example", "https://a/?x=1"])
def test_a_public_url_is_one_of_tls(url: str) -> None:
    with pytest.raises(ConfigError, match="--public-url"):
        public(url)
    assert public("https://a.example/curate/") == "https://a.example/curate"
