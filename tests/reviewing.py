"""A small sample to review, and its page served by a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from curate.files import frame
from curate.review import Design, Sample
from curate.review.sample import name_row

ROOT = Path(__file__).resolve().parents[1]
SUBJECTS = ["高血压", "糖尿病", "痛风", "哮喘", "骨质疏松", "偏头痛", "荨麻疹", "胃食管反流"]
QUESTIONS = ["的患者能喝咖啡吗", "平时饮食要注意什么", "吃药后多久复查一次", "会不会遗传给孩子"]
ANSWERS = [
    "患者每日饮用咖啡不宜超过两杯，初次饮用者应观察血压变化。",
    "饮食以清淡为主，限制食盐，多吃新鲜蔬菜，少吃动物内脏。",
    "开始用药后两到四周复查，指标稳定后每三个月复查一次。",
    "父母一方患病者，子女的风险高于一般人群，但并不一定发病。",
]
TEXTS = [
    (f"{subject}{question}", f"{subject}：{answer}")
    for subject in SUBJECTS
    for question in QUESTIONS
    for answer in ANSWERS
]


def sample(
    folder: Path,
    texts: Sequence[tuple[str, str]],
    people: Sequence[str] = ("张医生",),
    language: str = "zh",
    shared: bool = True,
) -> Sample:
    """Return a frozen sample of these texts; everybody reads all of it, or everybody a part."""
    rows = [
        {
            "row_id": name_row(folder.name, number, [f"q{number}", f"d{number}"], pair),
            "ids": [f"q{number}", f"d{number}"],
            "texts": list(pair),
            "stratum": "all",
            "probability": 0.5,
            "assessors": list(people) if shared else [people[number % len(people)]],
            "verdict": "relevant",
        }
        for number, pair in enumerate(texts, start=1)
    ]
    design = Design(folder.name, "relevance", language, 0, list(people), [])
    drawn = Sample(folder, design, frame("survey", rows))
    drawn.freeze()
    return Sample.load(folder)


class Server:
    """The page of a sample, in a process that can be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    def start(self) -> None:
        """Serve; returns when the address is known, at which connections are taken."""
        self.process = subprocess.Popen(
            [sys.executable, ROOT / "tests" / "review_child.py", self.folder, str(self.port)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=(self.folder / "server.log").open("ab"),
            text=True,
        )
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        assert self.address, (self.folder / "server.log").read_text(encoding="utf-8")
        self.port = urlsplit(self.address).port or 0
        self.origin = f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Serve a sample's page until the block ends."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.kill()
        if server.process.stdout:
            server.process.stdout.close()
