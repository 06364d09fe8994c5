"""HTML in texts: what is a tag, what is stripped, and that no text costs more than its length."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.tables.readers.markup import is_html, strip


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("<p>Hello&nbsp;<b>World</b></p><p>again</p>", "Hello World\n\nagain"),
        ("10<sup>9</sup>/L, H<sub>2</sub>O, 5<SUP>-3</SUP>", "10^9/L, H2O, 5^-3"),
        ("<script>var a = '<p>x</p>'</script>text<style>p {}</style>", "text"),
        ("<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>", "a\n\nb"),
        ("a<br>b<br/>c<BR />d", "a\nb\nc\nd"),
        ("<td>1</td><td>2</td>", "1 2"),
        ("<!-- gone\n-->x", "x"),
        ("<!DOCTYPE html><html lang=zh>头痛</html>", "头痛"),
        ("<a href='x?a=1&copy=2' target=_blank>l</a> ?a=1&copy=2 &copy; &lt;b&gt; &#22836;", "l ?a=1&copy=2 © <b> 头"),
        ("<img src=x.png disabled>p<0.05", "p<0.05"),
        ("<script>never closed, so it hides nothing", "never closed, so it hides nothing"),
    ],
)
def test_tags_are_stripped(text: str, stripped: str) -> None:
    assert is_html(text)
    assert strip(text) == stripped


@pytest.mark.parametrize(
    "text",
    ["a < b", "p<0.05 and q>0.1", "if a<b and c>d", "x <a and y> z", "<think>so</think>", "AT&amp;T\r\n\t ",
     "<!-- open", "<p", "List<String>", "<name@host.org>", "</ b>", " <- -> "],
)  # fmt: skip
def test_what_is_no_tag_stays_byte_equal(text: str) -> None:
    assert not is_html(text)
    assert strip(text) == text


@given(st.text(alphabet="<>/!-ab p=\"'&;\n头"))
def test_a_text_changes_only_if_it_holds_html(text: str) -> None:
    assert is_html(text) or strip(text) == text


@given(st.text().filter(lambda text: "<" not in text))
def test_text_without_a_bracket_stays(text: str) -> None:
    assert strip(text) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    ["<", "<!--", "<a ", "<div>", "<script>", "</", '<a b="', "<a b='\" ", "<p " + "a=b " * 50, "<b>\n \n", "&lt"],
)
def test_nested_and_broken_tags_take_time_by_length(part: str) -> None:
    def seconds(size: int) -> float:
        text = "<p>x</p>" + part * (size // len(part))
        begin = time.process_time()
        strip(text)
        return time.process_time() - begin

    seconds(1_000)
    assert seconds(160_000) < 64 * max(min(seconds(10_000), seconds(10_000)), 0.0005)  # of 16; a square would be 256
