"""Make the fixture of consumerFilter.json: written by the real RocketMQ 5.3.0.

Builds ``filters/`` with Maven outside the source tree, lets RocketMQ's own
ConsumerFilterManager register and persist the groups of ``FILTERS``, and keeps the
file as it wrote it. The standard library, a JDK and Maven suffice.

Exit codes: 0 made; 4 Java, Maven or the released jars are missing.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIXTURE = HERE / "rocketmq-5.3.0-consumerFilter.json"
FILTERS = [
    ["orders", "group_a", "a > 5 AND b = 'x'", 1_700_000_000_001],
    ["orders", "CID_1", "color IN ('red', 'green')", 1_700_000_000_002],
    ["payments", "group_a", "price BETWEEN 1.5 AND 20", 1_700_000_000_003],
    ["支付", "group-b", "pay = '支付' OR $x IS NULL", 1_700_000_000_004],
    ["audit-log", "group-b", "note = 'it''s \"quoted\" \\\\ here' OR n IS NULL", 4],
    ["audit-log", "group-c", "NOT (a\n=\t5)", 5],
    *[[f"topic-{n}", f"group-{n % 7}", f"n = {n}", n] for n in range(40)],
]
UNREGISTERED = ["CID_1"]


def main() -> int:
    if not (shutil.which("mvn") and shutil.which("java")):
        print("make_filters.py: needs `java` and `mvn` on the PATH", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        build = f"-Dgolden.build={scratch}/build"
        pom = HERE / "filters" / "pom.xml"
        subprocess.run(["mvn", "-q", "-B", build, "-f", pom, "package"], check=True)
        asked = {
            "verb": "save",
            "root": f"{scratch}/root",
            "filters": FILTERS,
            "unregistered": UNREGISTERED,
        }
        jar = f"{scratch}/build/golden-filters.jar"
        done = subprocess.run(
            ["java", f"-Duser.home={scratch}", "-jar", jar],
            input=json.dumps(asked) + "\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            check=True,
        )
        made = Path(scratch, "root", "config", "consumerFilter.json").read_bytes()
    FIXTURE.write_bytes(made)
    print(f"{FIXTURE}: {len(made)} bytes, {len(json.loads(done.stdout))} filters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
