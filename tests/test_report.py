#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report page, from fixtures made by hand in the record format of bench and eval. tests/test_report.py PROGRAM"""
import html.parser
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
BENCH, EVAL = os.path.join(DATA, "report_bench.jsonl"), os.path.join(DATA, "report_eval.jsonl")
VOID = {"meta", "br", "circle", "line"}


class Page(html.parser.HTMLParser):
    """Collects text, tags and attributes; every element must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError(f"left open: {self.open}")
        self.text = " ".join(" ".join(self.words).replace("\xa0", " ").split())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> at {self.getpos()} closes nothing")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, content=None):
        path = os.path.join(self.folder.name, name)
        if content is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        return path

    def report(self, *args):
        return subprocess.run([PROGRAM, "report", *args], capture_output=True, text=True, timeout=60)

    def page(self, *results):
        out = self.path("out.html")
        result = self.report(*results, "-o", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(out, encoding="utf-8") as file:
            return Page(file.read())

    def test_self_contained(self):
        page = self.page(BENCH, EVAL)
        self.assertFalse({"script", "link", "img", "iframe", "object"} & set(page.tags))
        for name, value in page.attributes:
            self.assertFalse(name.startswith("on"), name)
            if name in ("href", "src"):
                self.assertTrue(value.startswith("#"), value)
        with open(self.path("out.html"), encoding="utf-8") as file:
            self.assertNotRegex(file.read(), r"(?i)https?://|@import|url\(")

    def test_summary(self):
        page = self.page(BENCH)
        cases = [r for r in records(BENCH) if "op" in r]
        passed = [r["speedup"] for r in cases if r["status"] == "PASSED"]
        mean = math.exp(sum(map(math.log, passed)) / len(passed))
        self.assertIn(f"20 cases planned {len(passed)} passed 5 failed 2 skipped or not run {mean:.2f}×", page.text)
        self.assertIn("7 faster", page.text)

    def test_cases(self):
        page = self.page(BENCH)
        for record in records(BENCH):
            if "op" in record:
                self.assertIn(record["shapes"], page.text)
                self.assertIn(record["verdict"] or record["status"], page.text)
                self.assertIn(" ".join(record["detail"].split()), page.text)
        self.assertIn("[0,3] 0.48215574 0.96431148", page.text)
        self.assertIn("[6,575] 0.8 not written", page.text)
        self.assertIn("[0,5] 0.0311 not finite", page.text)
        labels = [value for name, value in page.attributes if name == "aria-label"]
        self.assertIn("speedup 1.62, interval 1.55 to 1.7", labels)

    def test_escaping(self):
        with open(BENCH, encoding="utf-8") as file:
            self.assertIn("<script>", file.read())
        page = self.page(BENCH)
        self.assertIn("<script>alert(1)</script>", page.text)  # as text
        self.assertIn('names are "escaped" & <b>not markup</b>', page.text)

    def test_whiskers_stand_where_they_belong(self):
        """Positions grow with the speedup, 1x is where the dashed line is, and the interval encloses the dot."""
        out = self.path("out.html")
        self.report(BENCH, "-o", out)
        with open(out, encoding="utf-8") as file:
            text = file.read()
        plots = re.findall(r'speedup ([\d.]+), interval ([\d.]+) to ([\d.]+)">(.*?)</svg>', text)
        self.assertEqual(len(plots), 13)
        seen = []
        for speedup, low, high, body in plots:
            one = float(re.search(r'class="one" x1="([\d.]+)%', body).group(1))
            ends = re.search(r'class="whisker \w+"><line x1="([\d.]+)%" x2="([\d.]+)%"', body)
            dot = float(re.search(r'cx="([\d.]+)%', body).group(1))
            self.assertLessEqual(float(ends.group(1)), dot)
            self.assertGreaterEqual(float(ends.group(2)), dot)
            self.assertEqual(dot > one, float(speedup) > 1, speedup)
            seen.append((float(speedup), dot))
        self.assertEqual([d for _, d in sorted(seen)], sorted(d for _, d in seen))

    def test_runs(self):
        """A run of eval counts its models; its mean is that of their factors."""
        out = self.path("out.html")
        self.report(BENCH, EVAL, "-o", out)
        with open(out, encoding="utf-8") as file:
            rows = re.findall(r"<tr>(?:(?!</tr>).)*report_eval\.jsonl(?:(?!</tr>).)*</tr>", file.read(), re.S)
        factors = [r["factor"] for r in records(EVAL) if r.get("status") == "PASSED"]
        mean = math.exp(sum(map(math.log, factors)) / len(factors))
        self.assertIn('<td class="n">3</td><td class="n">2</td><td class="n">1</td><td class="n">%.2f×</td>' % mean, rows[0])

    def test_eval(self):
        page = self.page(EVAL)
        self.assertIn("2 of 3 whole models passed", page.text)
        self.assertIn("all equal", page.text)
        self.assertIn("request 2, step 17: 1044, candidate 198", page.text)
        self.assertIn("no tie", page.text)
        self.assertIn("rms_norm 18300", page.text)
        self.assertIn("cosine 0.99998 (threshold 0.999)", page.text)
        self.assertNotIn("cases planned", page.text)

    def test_environment_is_told_once(self):
        page = self.page(BENCH, EVAL)
        self.assertEqual(page.text.count("made by hand"), 1)

    def test_layouts_of_json(self):
        lines = self.page(BENCH).text
        pretty = self.path("pretty.json", json.dumps(records(BENCH), indent=2))
        blank = self.path("blank.jsonl", "\n\n" + "\n\n".join(json.dumps(r) for r in records(BENCH)))
        cut = re.compile(r"Environment.*")
        for path in (pretty, blank):
            self.assertEqual(cut.sub("", self.page(path).text).replace(path, BENCH), cut.sub("", lines))

    def test_diff(self):
        slower = [dict(r, candidate_ms=r["candidate_ms"] * 2) if r.get("candidate_ms") else r for r in records(BENCH)
                  if r.get("op") != "llama_mlp"]
        other = self.path("other.jsonl", "\n".join(map(json.dumps, slower)))
        page = self.page("--diff", BENCH, other)
        self.assertEqual(page.text.count("0.50×"), 11)
        self.assertEqual(page.text.count("not there"), 2)

    def test_json(self):
        out = self.path("out.html")
        result = self.report(BENCH, "-o", out, "--json")
        record = json.loads(result.stdout)
        self.assertEqual((record["written"], record["cases"], record["evals"]), (out, 19, 0))

    def refuse(self, args, *words):
        result = self.report(*args)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_bad_input(self):
        out = self.path("never.html")
        self.refuse([], "no result file")
        self.refuse(["/no/such.json", "-o", out], "/no/such.json")
        self.refuse([self.folder.name, "-o", out], self.folder.name)
        self.refuse([self.path("empty", ""), "-o", out], "empty")
        self.refuse([self.path("cut", '{"op":"rms_norm","status":"PASSED"}\n{"op":"rms'), "-o", out], "cut", "line 2")
        self.refuse([self.path("list", "[1, 2]"), "-o", out], "list", "not a JSON object")
        self.refuse([self.path("other", '{"schema":"fastkernels/list/1"}'), "-o", out], "other", "no record of bench or eval")
        self.refuse([self.path("deep", "[" * 100000), "-o", out], "deep")
        self.refuse(["--diff", BENCH, "-o", out], "--diff", "1")
        self.assertFalse(os.path.exists(out))

    def test_unusual_records(self):
        """Wrong types and extreme numbers make a poorer page, not a broken one."""
        odd = [{"op": "x", "status": "PASSED", "speedup": 1e300, "ci_low": -1, "ci_high": 0, "shapes": {"a": [1]}, "level": "?"},
               {"op": "x", "status": "PASSED", "speedup": "fast", "mismatches": "many", "detail": 7, "device": []},
               {"op": "x", "status": "NO_SUCH", "roofline_fraction": 99, "mismatches": [1, {"index": "?"}], "count": 1e99},
               {"op": "y" * 10000, "status": "PASSED", "speedup": 1e-300, "candidate_ms": 1e300, "baseline_ms": -4},
               {"model": "m", "status": "PASSED", "factor": 0, "reached": [], "baseline": 3, "metric": {}, "first_divergence": {}},
               {"summary": {"planned": -7}, "environment": [1], "commit": None}]
        page = self.page(self.path("odd.jsonl", "\n".join(map(json.dumps, odd))))
        self.assertIn("NO_SUCH", page.text)

    def test_output_that_cannot_be_written(self):
        self.refuse([BENCH, "-o", "/no/such/folder/r.html"], "/no/such/folder/r.html")
        self.refuse([BENCH, "-o", self.folder.name], self.folder.name)
        self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: test_report.py PROGRAM [unittest options]")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
