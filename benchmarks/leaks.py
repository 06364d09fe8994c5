"""How many planted near-duplicates the leak check finds between 20,000 training and 734 test queries, and how fast.

`--data FOLDER` has zh_legacy, real questions and answers (queries.jsonl, corpus.jsonl, qrels.tsv), and synonyms, a TSV
of terms. The test split is 734 of the real questions and the answers to them. The training split is the others, and
questions made of terms, up to 20,000; edited copies of test questions and, under questions of their own, of answers
are planted. The vectors are USE's: encoded into a new cache, and read from it, as after a pool.

Run: python -m benchmarks.leaks --data FOLDER [--write]
"""

import argparse
import json
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import harness, paper
from benchmarks.harness import Watch, share
from curate.ask import build
from curate.pipeline.stage import Context
from curate.retrieval.similarity import leaks
from curate.runs import leaks as splits
from curate.runs.leaks import Leaks

TEST, TRAIN, PLANTED = 734, 20_000, 100
LEXICON = "thuocl_medical_lexicon.tsv"
FORMS = ("{}怎么治疗", "{}有什么症状", "{}平时要注意什么", "得了{}能运动吗", "{}要做哪些检查")
EDITS: dict[str, Callable[[str], str]] = {
    "punctuation": lambda text: "".join(" " if unicodedata.category(sign)[0] == "P" else sign for sign in text) + "！",
    "full width": lambda text: "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text),
    "greeting": lambda text: f"请问{text}谢谢",
    "particle": lambda text: text.rstrip("？?。 ") + "呢",
    "a sign lost": lambda text: text[: len(text) // 2] + text[len(text) // 2 + 1 :],
    "halves swapped": lambda text: text[len(text) // 2 :] + "，" + text[: len(text) // 2],
}


def lines(path: Path) -> list[dict[str, str]]:
    """Return the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def made(folder: Path, lexicon: Path) -> tuple[splits.Split, splits.Split, dict[str, str], dict[str, str]]:
    """Return both splits, and for every planted query and document which edit it is."""
    real = pl.DataFrame(lines(folder / "queries.jsonl")).select(query_id="_id", text="text")
    answers = {row["_id"]: row["text"] for row in lines(folder / "corpus.jsonl")}
    qrels = pl.read_csv(folder / "qrels.tsv", separator="\t").select(query_id="query-id", doc_id="corpus-id")
    mixed = real.sample(fraction=1, shuffle=True, seed=7)
    test, others = mixed.head(TEST), mixed.slice(TEST)
    terms = [line.split("\t")[0] for line in lexicon.read_text(encoding="utf-8").splitlines()[1:]]
    texts, planted_queries, planted_documents, extra = [], {}, {}, {}
    pairs = list(qrels.join(others, on="query_id", how="semi").rows())
    known = dict(test.iter_rows())
    labels = qrels.join(test, on="query_id", how="semi")
    for place, (edit, change) in enumerate(EDITS.items()):
        for number in range(PLANTED):
            at = (place * PLANTED + number) % TEST
            planted_queries[f"pq-{edit}-{number}"] = edit
            texts.append((f"pq-{edit}-{number}", change(test["text"][at])))
            doc, own = f"pd-{edit}-{number}", f"own-{edit}-{number}"
            planted_documents[doc] = edit
            extra[doc] = change(answers[labels["doc_id"][at]])
            texts.append((own, f"{terms[at]}和{terms[-at - 1 - place]}有关系吗"))
            pairs.append((own, doc))
    made_up = (form.format(term) for form in FORMS for term in terms)
    left = TRAIN - len(others) - len(texts)
    texts += [(f"made-{number}", text) for number, text in zip(range(left), made_up, strict=False)]
    train = pl.concat([others, pl.DataFrame(texts, {"query_id": pl.String, "text": pl.String}, orient="row")])
    answers |= extra

    def split(queries: pl.DataFrame, rows: pl.DataFrame) -> splits.Split:
        wanted = rows["doc_id"].unique().sort()
        documents = pl.DataFrame({"doc_id": wanted, "text": [answers[doc] for doc in wanted]})
        return splits.Split(queries, rows, documents)

    assert len(train) == TRAIN
    assert len(known) == TEST
    schema = {"query_id": pl.String, "doc_id": pl.String}
    return (
        split(train, pl.DataFrame(pairs, schema, orient="row")),
        split(test, labels),
        planted_queries,
        planted_documents,
    )


def wide() -> tuple[leaks.SplitTexts, leaks.SplitTexts]:
    """Return 100,000 and 6,000 documents with random vectors."""
    drawn = np.random.default_rng(7).standard_normal((106_000, 512), dtype=np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    ids = [str(number) for number in range(len(drawn))]
    left, right = (leaks.SplitTexts(ids[part], ids[part], drawn[part]) for part in (slice(6_000, None), slice(6_000)))
    return left, right


def counted(found: pl.DataFrame, kind: str, name: str, planted: dict[str, str]) -> Iterator[list[str]]:
    """Yield how many of each edit are among what was found."""
    seen = set(found.filter(pl.col("kind") == kind)[name])
    for edit in EDITS:
        each = [one for one, how in planted.items() if how == edit]
        yield [f"{kind}, {edit}", f"{sum(one in seen for one in each)} of {len(each)}"]


def measure(data: Path) -> str:
    """Plant, check, and return what there is to say."""
    train, test, queries, documents = made(data / "zh_legacy", data / "synonyms" / LEXICON)
    rule, times = Leaks(), {}
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        encoder = build.encoder(Context(run=home, out=home, home=home), rule.encoder)
        for label in ("encoding, with an empty cache", "reading cached vectors"):
            with Watch() as times[label]:
                sides = train.side(encoder), test.side(encoder)
    with Watch() as times["check"]:
        found = leaks.find(*sides, rule.rule())
    left, right = wide()
    with Watch() as times["documents alone, 100,000 + 6,000 random ones"]:
        leaks.alike(left, right, rule.documents, rule.overlap, leaks.DOCUMENT_RUN)
    rows = [
        [name, f"{each.wall:.1f}", f"{each.cpu:.1f}", share(each.figures["foreign"])] for name, each in times.items()
    ]
    hits = [*counted(found, "query", "query_id", queries), *counted(found, "document", "doc_id", documents)]
    asked = found.filter(pl.col("kind") == "query")["query_id"]
    real = asked.filter(~asked.str.starts_with("pq-")).len()
    sizes = (
        f"{len(train.queries):,} + {len(test.queries):,} queries, {len(train.documents):,} + {len(test.documents):,}"
    )
    parts = [
        f"{sizes} documents, once; peak memory {paper.highest():,} MB.",
        harness.table(["step", "s", "CPU s", "foreign CPU"], rows),
        harness.table(["planted copies", "found"], hits),
        f"Besides these {real:,} training queries resemble a test query.",
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    options = harness.parser(__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    typed = options.parse_args()
    if typed.measure:
        print(json.dumps({"body": measure(typed.data)}))
    else:
        harness.publish("leaks", harness.child("leaks", "--measure", "--data", typed.data)["body"], typed.write)
