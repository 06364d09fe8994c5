"""Output of `curate init`: choices with reasons, suggestions, judges, costs, and the next command."""

from collections.abc import Iterable, Iterator

from curate.commands.init.judges import PANEL, variables
from curate.commands.init.looking import DataSources, named
from curate.commands.init.request import quoted
from curate.commands.init.writing import PipelineDraft, PlanPrice
from curate.llm.budget import CostEstimate
from curate.llm.exchange_rates import line as rates_line
from curate.llm.exchange_rates import shown
from curate.tables.readers.guess import has_known_name
from curate.tables.readers.items import LINE
from curate.tables.readers.look import LONG, TableLook
from curate.view.text import width

_LABEL = 10
"""Width of the labels, in characters."""
_ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "gb18030": "GB18030", "big5": "Big5", "cp1252": "Windows-1252"}
_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_ITEMS = {"queries": "queries", "corpus": "documents", "qrels": "qrels"}
_OTHERS = 8


def lines(user_data: DataSources, draft: PipelineDraft) -> Iterator[str]:
    """Yield all lines of output."""
    for look in user_data.tables.values():
        yield from _block(look.table, _table(user_data, look))
    if "qrels" not in user_data.tables:
        pairs = "every row is a known pair: its document answers its query (`pairs: true` in the file)"
        yield from _block("qrels", [pairs if draft.ingest.pairs else "none; none are needed"])
    yield from _block("note", user_data.sources.notes)
    yield from _block("language", [_language(user_data, draft.pipeline.head.language)])
    yield from _block("texts", _texts(user_data, draft))
    yield from _block("judges", _judges(draft))
    yield from _block("pool", [_pool(user_data, draft)])
    yield from _block("price", _price(draft))
    yield from _block("written", [str(draft.path)])
    yield from _block("next", _next(user_data, draft))


def _block(label: str, body: Iterable[str]) -> Iterator[str]:
    """Yield lines, the first with a label.

    Unprintable characters become spaces, because data may contain control codes.
    """
    for number, line in enumerate(body):
        plain = "".join(sign if sign.isprintable() else " " for sign in line)
        yield f"{'' if number else label:{_LABEL}} {plain}".rstrip()


def _table(user_data: DataSources, look: TableLook) -> Iterator[str]:
    rows = f"{look.rows:,} row{'' if look.rows == 1 else 's'}"
    yield f"{look.location}   {', '.join([*_format(look), rows])}"
    assert look.guess is not None
    chosen = {**look.guess.usual, **look.guess.columns}
    if look.form:
        yield f"  a row of the file is {look.form}"
    order = [field for field in ("id", "query_id", "doc_id", "title", "text", "score") if field in chosen]
    columns = {field: "line numbers" if chosen[field] == LINE else chosen[field] for field in order}
    fields, wide = max(map(len, order)), max(map(width, columns.values()))
    for field in order:
        reason = _reason(user_data, look, field, chosen[field])
        yield f"  {field:{fields}}  {columns[field]}{' ' * (wide - width(columns[field]))}  {reason}"
    unused = look.guess.unused if look.table != "qrels" else ()
    if unused:
        more = f" and {len(unused) - _OTHERS} more" if len(unused) > _OTHERS else ""
        yield f"  not used: {', '.join(unused[:_OTHERS])}{more}"


def _format(look: TableLook) -> Iterator[str]:
    yield {"txt": "a text per line", "task": "a task"}.get(look.format, look.format.upper())
    if look.delimiter:
        yield _DELIMITERS.get(look.delimiter, repr(look.delimiter))
    if look.sheet:
        yield f"sheet {look.sheet}"
    if look.packed:
        yield look.packed
    if look.encoding:
        yield _ENCODINGS.get(look.encoding, look.encoding)


def _reason(user_data: DataSources, look: TableLook, field: str, column: str) -> str:
    assert look.guess is not None
    if field in named(user_data.input, look.table):
        return "as you said"
    if column == LINE:
        return "no column looks like an id" + ("; the qrels will not match them" if "qrels" in user_data.tables else "")
    if field in look.guess.usual:
        return "the usual name"
    if field == "text" and look.table in user_data.by_cells:
        return "its cells ask" if look.table == "queries" else "its cells answer"
    if has_known_name([column], look.table, [field]):
        return {"id": "named like an id", "title": "named like a title", "text": "named like the text"}.get(
            field, "named so"
        )
    by_values = {"id": "short, and different in every row", "score": "the only column of grades"}
    return by_values.get(field, "the longest texts")


def _language(user_data: DataSources, language: str) -> str:
    counts = " and ".join(f"{share:,} of {total:,} {what}" for what, (share, total) in user_data.shares().items())
    detected = user_data.spoken.language
    if user_data.request.setting_at("language") or user_data.request.language:
        differs = not user_data.spoken.fits(language)
        return f"{language}, as you said{f'; the texts look {user_data.spoken}' if differs else ''}"
    query_note = (
        f"; the queries look {user_data.spoken.tables['queries']}"
        if len(set(user_data.spoken.tables.values())) > 1
        else ""
    )
    return f"{detected}, in {counts} of the first rows{query_note}"


def _texts(user_data: DataSources, draft: PipelineDraft) -> Iterator[str]:
    nothing = True
    for look in user_data.tables.values():
        for offer in _offers(look, draft):
            nothing = False
            yield offer
    if nothing:
        yield "no HTML, none empty, none over-long"


def _offers(look: TableLook, draft: PipelineDraft) -> Iterator[str]:
    what, of = _ITEMS[look.table], f"of {look.rows:,} {_ITEMS[look.table]}"
    if look.html:
        offer = ": `html: strip` in the file, or --set ingest.html=strip, takes it out"
        yield f"{look.html:,} {of} hold HTML{', which is taken out' if draft.ingest.html == 'strip' else offer}"
    if look.long:
        limit = draft.pipeline.sections["judge"].model_dump()["passage_tokens"]
        cut = f"a judge is shown the first {limit:,} tokens" if limit else "a judge is shown all of them"
        yield f"{look.long:,} {of} are longer than {LONG:,} characters (longest {look.longest:,}); {cut}"
    if look.empty:
        yield f"{look.empty:,} {of} are empty; `ingest` leaves them out"
    bad = look.problems + (look.id.repeated + look.id.missing if look.id else 0)
    if bad and draft.ingest.on_error == "drop":
        yield f"{bad:,} rows of {what} cannot be used; `ingest` drops them, each with its reason"
    elif look.problems:
        yield f"{look.problems:,} rows of {what} cannot be read, and `curate run` stops there:"
        yield f"  {look.problem}"
        yield "  `on_error: drop` in the file, or --set ingest.on_error=drop, drops such rows, each with its reason"


def _judges(draft: PipelineDraft) -> Iterator[str]:
    reasons = {judge.name: judge.reason for judge in draft.judges}
    wide = max(map(len, draft.models))
    language_models = {judge.judge for judge in draft.whole.judges}
    if not language_models:
        yield f"{', '.join(draft.models)}   heuristics, whose labels are for testing only"
        if not draft.keyless and not draft.named:
            yield f"  no key is set ({variables()}, ...), and models.yaml names no language model"
    else:
        for name in draft.models:
            yield f"{name:{wide}}  {reasons.get(name, 'as you said' if name in language_models else 'a heuristic')}"
        if len({judge.family for judge in draft.judges}) < len(draft.judges):
            yield "  some are of one family, which err alike: `curate models` lists others"
        elif 0 < len(draft.models) < PANEL:
            yield "  three of different families are better: `curate models` lists who else could judge"
    for judge in draft.keyless:
        yield f"  {judge.name} of models.yaml needs its key: export {judge.key}=..."


def _pool(user_data: DataSources, draft: PipelineDraft) -> str:
    documents = user_data.documents
    size = min(draft.pool.size, documents)
    paper = (
        ""
        if draft.pool.size >= min(500, documents)
        else "; the paper took 500: --set pool.depth=500 --set pool.size=500"
    )
    texts = "passages" if user_data.input.passages else "documents"
    return f"{size:,} of {documents:,} {texts} per query, by {', '.join(draft.pool.retrievers)}{paper}"


def _price(draft: PipelineDraft) -> Iterator[str]:
    """Yield a table with a row per judge: calls and cost of the trial and of all queries."""
    plans = [plan for plan in (draft.trial, draft.whole) if plan is not None and plan.total is not None]
    if not plans:
        return
    table = [
        [judge, *(cell for row in rows for cell in _cost(row.estimate, row.cost_least))]
        for judge, *rows in zip(
            (judge.judge for judge in draft.whole.judges), *(plan.judges for plan in plans), strict=True
        )
    ]
    if len(table) > 1:
        table.append(["together", *(cell for plan in plans for cell in _total_cost(plan))])
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    heads = [
        f"{plan.queries:,} queries, a trial" if plan is draft.trial else f"all {plan.queries:,} queries"
        for plan in plans
    ]
    over = zip(heads, widths[1::2], widths[2::2], strict=True)
    yield (" " * widths[0] + "".join(f"   {head:>{calls + money + 2}}" for head, calls, money in over)).rstrip()
    for row in table:
        pairs = zip(row[1::2], widths[1::2], row[2::2], widths[2::2], strict=True)
        yield f"{row[0]:{widths[0]}}" + "".join(f"   {calls:>{a}}  {money:>{b}}" for calls, a, money, b in pairs)
    yield from _caps(draft.whole)


def _cost(estimate: CostEstimate, least: float | None) -> tuple[str, str]:
    """Return the number of calls and the cost as text; for a cascade, the cost is a range."""
    if estimate.cost is None or least is None:
        return f"{estimate.calls:,} calls", "price unknown"
    fewest = f"{shown(least, estimate.currency)} to " if least < estimate.cost else ""
    return f"{estimate.calls:,} calls", f"about {fewest}{shown(estimate.cost, estimate.currency)}"


def _total_cost(price: PlanPrice) -> tuple[str, str]:
    """Return calls and cost of all judges as text; the cost is per currency if an exchange rate is missing."""
    assert price.total is not None
    estimates = [judge.estimate for judge in price.judges]
    calls, money = _cost(price.total, price.least)
    if price.total.cost is not None or any(estimate.cost is None for estimate in estimates):
        return calls, money
    by_currency: dict[str, float] = {}
    for estimate in estimates:
        by_currency[estimate.currency] = by_currency.get(estimate.currency, 0.0) + (estimate.cost or 0.0)
    return calls, "about " + " and ".join(shown(cost, code) for code, cost in by_currency.items())


def _caps(price: PlanPrice) -> Iterator[str]:
    """Yield sentences on prices or exchange rates that a budget (--max-cost) requires."""
    plans = [judge.estimate for judge in price.judges]
    currencies = {plan.currency for plan in plans if plan.cost}
    if any(plan.cost is None for plan in plans):
        yield "  a cap (--max-cost) needs every judge's price: judges.NAME.price in the file"
    elif len(currencies) > 1 and price.total and price.total.cost is None:
        rates = rates_line(currencies, max(currencies))
        yield f"  a cap (--max-cost) needs what these currencies are worth: `{rates}` in the file"


def _next(user_data: DataSources, draft: PipelineDraft) -> Iterator[str]:
    run = f"curate run {quoted(str(draft.path))}"
    if draft.whole.judges:
        yield f"{run}   after a look at the file; it stops before the first paid call and says the price"
        return
    yield f"{run}   after a look at the file; a trial without a language model, nothing is sent"
    if user_data.tables["corpus"].rows > 1000 and "e5" in (*draft.pool.retrievers, *draft.models):
        yield f"{run} --set 'pool.retrievers=[bm25, use]' --set 'judge.models=[lexical, use]'   quicker, without e5"
    yield "curate models   who could judge, and which key each needs"
