"""What still looks like personal data after masking: seldom wrong, listed by place, and it stops `export`."""

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.pii.masking import PSEUDONYMS, placeholders
from curate.pii.residual import is_measure, residues, scan
from curate.pii.settings import Masking, masker, untouched
from curate.pii.sieve import mask_all
from curate.system import resources
from tests.support.runs import curate, tiny
from tests.support.steps import beir, step

CLOSED = placeholders()


def found(text: str) -> list[tuple[str, str]]:
    return [(text[each.start : each.end], each.reason) for each in residues(text, CLOSED)]


SUSPICIOUS = {
    "电话一三八零零一三八零零零": ("一三八零零一三八零零零", "digits"),
    "手机：1 3 9 1 2 3 4 5 6 7 8": ("1 3 9 1 2 3 4 5 6 7 8", "digits"),
    "打１３９-１２３４-５６７８": ("１３９-１２３４-５６７８", "digits"),
    "1️⃣3️⃣9️⃣1️⃣2️⃣3️⃣4️⃣5️⃣6️⃣7️⃣8": ("1️⃣3️⃣9️⃣1️⃣2️⃣3️⃣4️⃣5️⃣6️⃣7️⃣8", "digits"),
    "记住1，3，9，1，2，3，4，5，6，7，8": ("1，3，9，1，2，3，4，5，6，7，8", "digits"),
    "壹叁玖壹贰叁肆伍陆柒捌": ("壹叁玖壹贰叁肆伍陆柒捌", "digits"),
    "一三八零零零零零零零零": ("一三八零零零零零零零零", "digits"),
    "13113213313": ("13113213313", "digits"),
    "你的号13912345678天天在": ("13912345678", "digits"),
    "身份证653121200411035636": ("653121200411035636", "digits"),
    "2013.5.6 13912345678": ("2013.5.6 13912345678", "digits"),
    "卡号6222 0212 3456 7890 123": ("6222 0212 3456 7890 123", "digits"),
    "call 212-285-0080": ("212-285-0080", "digits"),
    "我的QQ是123456": ("123456", "account"),
    "ＱＱ：１２３４５６": ("１２３４５６", "account"),
    "加我微信zhang_san88": ("zhang_san88", "account"),
    "微信号：zhangsan": ("zhangsan", "account"),
    "hotel wechat abc123": ("abc123", "account"),
    "车牌京A12345": ("A12345", "account"),
    "护照E12345678": ("E12345678", "account"),
    "发到a.b＠c.cn": ("b＠c.cn", "account"),
    "住院号：1234": ("1234", "record"),
    "姓名：张三，性别男": ("张三", "name"),
    "Patient name: Mary Hill": ("Mary Hill", "name"),
    "家庭住址：上海市黄浦区中山路3号": ("上海市黄浦区中山路3号", "address"),
    "[电话]或87654321": ("87654321", "digits"),
}
QUIET = (
    "电话[电话]，微信[微信号]，QQ:[QQ号]，姓名：[姓名]，住址：[地址]",
    "电话[电话＊＊＊＊＊]，姓名：■■",
    "电话12123456789，邮箱user000123456@mail.invalid，身份证000000195002280001",
    "热线12320，心理援助010-82951332，免费电话400-161-9995，电话：95588，急救120",
    "call 1-800-232-4636 or (888) 998-6325",
    "国药准字H20013024，批号：20130506123，ChiCTR-1900012345，rs1234567，PMID: 12345678",
    "HBV-DNA 1.38×10^6 copies/ml，12345678 IU/ml，2340000拷贝，每天10000000单位，也就是41900000",
    "血压90-140/60-90毫米汞柱，90~139/60~89，能量1800～2200千卡，600-1200mg/d",
    "0.215，0.215，7112.909，38695.00",
    "2013年5月6日，2013-05-06 12:30:45，20130506，2001/2003年，2011.12.16-2012.1.5，二〇一三年一二月",
    "1、2、3、4、5、6、7、8、9、10、11，一二三四五六七八九",
    "手机用了3000小时，打电话10000次，手机5000元，账号，微信里说，姓名：不详，姓名：性别",
    "telephone intelligence 2019 account of 12345 patients",
    "CD4 350，B12 500，T3 1.2，HbA1c 6.5%，ICD-10 E11.900",
)


PUBLIC_CODES = """
doi:10.1056/NEJMoa2034577
https://doi.org/10.1016/S0140-6736(20)30183-5
10.1002/14651858.CD001234567
PMID: 31978945
PubMed ID 31978945
PMC7092819
PMCID: PMC7092819
arXiv:2004.01234
SNOMED CT 44054006
SNOMED: 73211009
SNOMED CT 编码 233604007
NDC 0002-8215-01
NDC 50090-2875-0
ENSG00000139618
ENST00000380152.8
EudraCT 2004-000446-20
EU CT 2022-500014-26-00
NCT04280705
ChiCTR2000029308
ISRCTN83971151
UMIN000012345
JPRN-UMIN000012345
ACTRN12618000412280
CTRI/2020/05/025123
国药准字H20213456
国药准字Z44021940
国械注准20193401234
国械注进20173404567
粤械注准20182140123
食药监械(准)字2014第3460001号
ICD-10 E11.900
ICD-11 XN109234567
ISBN 978-7-117-12345-6
ISSN 0578-1426
https://pubmed.ncbi.nlm.nih.gov/31978945/
www.who.int/publications/9789240012345
发病率为1234567/100000
12,345,678/10万
N Engl J Med 2020;382:1199-1207.
Lancet. 2020 Feb 15;395(10223):497-506.
中华内科杂志,2019,58(3):1182-1186
pp. 1234-1289
国家自然科学基金(81771234)
UMLS C0011849
MedDRA 10012601
LOINC 2345-7
ORPHA:558123
HP:0001250
GO:0008150
rs7903146
NM_000546.6:c.743G>A
chr17:7674220-7674230
GSE123456789
""".strip().splitlines()
PERSONAL_NUMBERS = """
PMID 13912345678
PMID 010-61234870
doi 13912345678
NCT13912345678
NCT0428070513
SNOMED 13912345678
NDC 139-1234-5678
ENSG13912345678
国药准字13912345678
国械注准139123456789012345
https://example.org/call?tel=4917612345678
https://wa.me/4917612345678
发病率13912345678/100000
2020;382:13912345678
ISBN 139 1234 5678
ICD 13912345678
HP:13912345678
EudraCT 2004-13912345678
rs13912345678
第13912345678页
""".strip().splitlines()


@pytest.mark.parametrize("code", PUBLIC_CODES)
def test_public_codes_pass_by_their_form(code: str) -> None:
    text = f"该研究见{code}，结果如下。"
    assert masker(Masking(), "zh", key=b"k" * 32).mask(text).text == text
    assert found(text) == []
    assert found(f"as described ({code}) before") == []


@pytest.mark.parametrize("number", PERSONAL_NUMBERS)
def test_a_number_of_a_person_does_not_pass_as_a_code(number: str) -> None:
    text = f"该研究见{number}，结果如下。"
    masked = masker(Masking(), "zh", key=b"k" * 32).mask(text)
    assert masked.spans or found(text), "neither masked nor listed"


@pytest.mark.parametrize(("text", "expected"), SUSPICIOUS.items())
def test_suspicious(text: str, expected: tuple[str, str]) -> None:
    assert found(text) == [expected]
    assert [each for row, each in scan(["", text], CLOSED) if row == 1] == residues(text, CLOSED)


@pytest.mark.parametrize("text", QUIET)
def test_quiet(text: str) -> None:
    assert found(text) == []


BESIDE = {"phone": "电话", "email": "邮箱：", "id_card": "身份证号", "plate": "车牌", "name": "姓名："}


@given(st.sampled_from(sorted(PSEUDONYMS)), st.integers(0, 2**256 - 1))
def test_pseudonyms_are_no_residue(kind: str, number: int) -> None:
    assert found(f"{BESIDE[kind]}{PSEUDONYMS[kind](number)}，谢谢") == []


@pytest.mark.parametrize(
    ("number", "after", "expected"),
    [
        ("500mg", "", True),
        ("３５ 岁", "", True),
        ("2019", "年", True),
        ("1.5-2.5", "mmol/L", True),
        ("12345678", "IU/ml", True),
        ("13912345678", "天", False),
        ("12号楼", "", False),
        ("500", "mgx", False),
        ("mg", "", False),
    ],
)
def test_measures(number: str, after: str, expected: bool) -> None:
    assert is_measure(number, after) is expected


PARTS = st.sampled_from(
    [
        "电话",
        "1",
        "39",
        "一",
        "零",
        " ",
        "-",
        "，",
        ":",
        "微信",
        "a",
        "b_c",
        "@d.cn",
        "姓名：",
        "张三",
        "[电话]",
        "mg",
        "Ｑ",
        "\U0001d7ce",
    ]
)


@given(st.lists(PARTS, max_size=30).map("".join))
def test_the_scan_of_many_finds_what_is_found_in_one(text: str) -> None:
    alone = residues(text, CLOSED)
    assert [each for _, each in scan([text], CLOSED)] == alone
    assert all(0 <= each.start < each.end <= len(text) for each in alone)
    assert all(left.end <= right.start for left, right in pairwise(alone))
    assert not any("[" in text[each.start : each.end] for each in alone)


@given(st.text(alphabet="0123456789", min_size=8, max_size=18), st.sampled_from(["", " ", "-", ".", "·", "  "]))
def test_long_numbers_are_found_however_they_are_separated(digits: str, gap: str) -> None:
    if "0000" in digits or digits[0] in "120" or digits[:2] in ("40", "80") or digits in "".join(map(str, range(200))):
        return
    text = f"请记住{gap.join(digits)}谢谢"
    assert "digits" in {reason for _, reason in found(text)}


@pytest.mark.parametrize(
    "base", ["1 2 3 ", "电话", "13912345678，", "一", "12.5-", "微信a", "@a.b", "姓名:", "(1", "电话:a"]
)
def test_time_grows_with_the_text_and_no_faster(base: str) -> None:
    def seconds(length: int) -> float:
        text, best = (base * length)[:length], float("inf")
        for _ in range(3):
            started = time.perf_counter()
            list(scan([text], CLOSED))
            best = min(best, time.perf_counter() - started)
        return best

    assert seconds(200_000) < 40 * max(seconds(20_000), 0.001)


def texts(path: Path, *names: str) -> list[str]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [row[name] for row in rows for name in names if row.get(name)]


def still_found(of: list[str], **settings: Any) -> list[str]:
    """Return the masked texts in which something is suspicious."""
    config = Masking(**settings)
    masked = [each.text for each in mask_all(masker(config, "zh", b"0" * 16), of)]
    return [masked[row] for row, _ in scan(masked, untouched(config))]


@pytest.mark.parametrize("mode", ["placeholder", "pseudonym", "tag"])
def test_the_demo_is_quiet_once_it_is_masked(mode: str) -> None:
    of = [text for name in ("queries", "corpus") for text in texts(resources.demo() / f"{name}.jsonl", "title", "text")]
    assert still_found(of, mode=mode) == []
    assert list(scan(of, CLOSED)) != []


def test_real_texts_are_quiet(shared_data: Path) -> None:
    """Three of 10,329: a telephone number written 6.8.5.8..., a number without context, values that run together."""
    folder = shared_data / "zh_legacy"
    of = texts(folder / "corpus.jsonl", "text") + texts(folder / "queries.jsonl", "text")
    assert len(still_found(of)) <= 4 < 0.001 * len(of)
    assert still_found(texts(shared_data / "pii" / "hard_negatives.jsonl", "text")) == []


def test_planted_numbers_are_found_where_nothing_is_masked(shared_data: Path) -> None:
    missed: list[str] = []
    for line in (shared_data / "pii" / "positives.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        places = residues(row["text"], CLOSED)
        for span in row["spans"]:
            numeric = span["label"] in ("PHONE", "ID_CARD", "QQ", "WECHAT", "EMAIL", "PLATE")
            if numeric and not any(each.start < span["end"] and span["start"] < each.end for each in places):
                missed.append(row["id"])
    assert missed == []


# The stage, and export


def test_the_table_holds_places_in_the_masked_texts(tmp_path: Path) -> None:
    documents = [
        {"_id": "d1", "title": "QQ 123456", "text": "手机13912345678或1 3 9 1 2 3 4 5 6 7 9"},
        {"_id": "d2", "title": "", "text": "每次500mg"},
    ]
    source = beir(tmp_path / "b", [{"_id": "q1", "text": "姓名：张三"}], documents)
    step(tmp_path / "run", "ingest", {"source": str(source)})
    report = step(tmp_path / "run", "mask", {"recognisers": ["mobile"]})
    rows = pl.read_parquet(tmp_path / "run" / "mask" / "residual.parquet").rows()
    assert [row[:8] for row in rows] == [
        ("corpus", "d1", "text", 7, 28, "digits", 14, 35),
        ("corpus", "d1", "title", 3, 9, "account", 3, 9),
        ("queries", "q1", "text", 3, 5, "name", 3, 5),
    ]
    text = pl.read_parquet(tmp_path / "run" / "mask" / "corpus.parquet")["text"][0]
    assert text[7:28] == "1 3 9 1 2 3 4 5 6 7 9"
    assert report.facts["residual"] == 3
    assert report.notes[0].startswith("3 places still look like personal data")


def test_export_stops_until_the_texts_are_accepted(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    corpus = tmp_path / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    rows[0]["text"] += "加QQ 123456。"
    rows[1]["text"] += "姓名：王五。"
    corpus.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    only = "mask.recognisers=[mobile]"
    stopped = curate(tmp_path, "run", name, "--set", only)
    assert stopped.returncode == 2
    assert "export: 2 texts still hold what looks like personal data" in stopped.stderr
    assert "curate check mask --residual" in " ".join(stopped.stderr.split())
    assert "123456" not in stopped.stderr
    assert not (tmp_path / "runs" / "tiny" / "export").exists()
    shown = curate(tmp_path, "show", "mask/residual")
    assert shown.returncode == 0, shown.stderr
    assert "d00" in shown.stdout
    one = curate(tmp_path, "export", "--set", "mask.accept=[d00]")
    assert one.returncode == 2
    assert "export: 1 texts" in one.stderr
    mark = (tmp_path / "runs" / "tiny" / "mask" / "stage.json").read_bytes()
    both = curate(tmp_path, "export", "--set", "mask.accept=[d00, d01]")
    assert both.returncode == 0, both.stderr
    assert "up to date" not in both.stderr
    allowed = curate(tmp_path, "export", "--set", "mask.residual=allow", "--set", "mask.accept=[]")
    assert allowed.returncode == 0, allowed.stderr
    assert "2 texts hold what looks like personal data and was allowed" in allowed.stderr + allowed.stdout
    assert (tmp_path / "runs" / "tiny" / "mask" / "stage.json").read_bytes() == mark
    mended = curate(tmp_path, "run", name, "--set", only, "--set", "mask.words.qq={words: ['123456', 王五]}")
    assert mended.returncode == 0, mended.stderr


def test_nothing_is_sent_to_a_model_elsewhere_until_the_texts_are_accepted(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    corpus = tmp_path / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    rows[0]["text"] += "加QQ 123456。"
    corpus.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    away = "judges.away={kind: openai, model: m, base_url: 'https://judge.invalid/v1'}"
    words = ["--set", "mask.recognisers=[mobile]", "--set", away, "--set", "judge.models=[away]"]
    stopped = curate(tmp_path, "run", name, *words)
    said = " ".join(stopped.stderr.split())
    assert stopped.returncode == 2
    assert "judges.away: 1 texts still hold what looks like personal data" in said
    assert "--set 'mask.accept=[ID, ...]'" in said
    assert "123456" not in said
    assert "pool: started" not in said, "it stops before what would be made again"
    mark = (tmp_path / "runs" / "tiny" / "mask" / "stage.json").read_bytes()
    accepted = curate(tmp_path, "run", name, *words, "--set", "mask.accept=[d00]")
    assert "judging would send" in accepted.stderr  # now what it costs is asked, and nothing was masked again
    assert (tmp_path / "runs" / "tiny" / "mask" / "stage.json").read_bytes() == mark
    allowed = curate(tmp_path, "judge", "--set", "mask.accept=[]", "--set", "mask.residual=allow")
    assert "judging would send" in allowed.stderr
    here = "judges.here={kind: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}"
    there = ["--set", here, "--set", "judge.models=[here]", "--set", "mask.residual=stop", "--set", "mask.accept=[]"]
    passing = curate(tmp_path, "judge", *there)  # what listens on this machine may be a gateway that forwards
    assert passing.returncode == 2
    assert "judges.here: 1 texts still hold what looks like personal data" in passing.stderr
    assert "judges.here.local: true" in " ".join(passing.stderr.split())
    local = curate(tmp_path, "judge", *there, "--set", "judges.here.local=true")
    assert "judging would send" in local.stderr


def test_an_encoder_elsewhere_gets_no_text_before_the_texts_are_accepted(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    corpus = tmp_path / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    rows[0]["text"] += "加QQ 123456。"
    corpus.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    away = "encoders.away={kind: api, base_url: 'https://encoder.invalid/v1', model: m, dim: 4, attempts: 1}"
    words = ["--set", "mask.recognisers=[mobile]", "--set", away, "--set", "pool.retrievers=[away]"]
    stopped = curate(tmp_path, "run", name, *words)
    assert stopped.returncode == 2
    assert "encoders.away: 1 texts still hold what looks like personal data" in stopped.stderr
    sent = curate(tmp_path, "pool", "--set", "mask.accept=[d00]")
    assert "encoders.away: no answer from https://encoder.invalid/v1/embeddings" in " ".join(sent.stderr.split())
