"""Start a released RocketMQ on a copy of a directory, and tell what it serves.

    python tests/corpus/serve_rocketmq.py VERSION DIR [--settings FILE] [--out FILE]

DIR is a store's root; it is not changed. Without ``--settings`` those of the
``settings.json`` next to DIR hold, or what the lengths of its files tell. The manifest
goes to FILE, or to standard output; ``rocketmq.serve_all`` says what stands in it.

Exit codes: 0 served, 1 RocketMQ refused, failed, ended or hung, 2 usage, 4 Java, Maven
or the released jars are missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rocketmq import MissingTool, Row, Settings, serve_all


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Start RocketMQ on a copy of DIR.")
    parser.add_argument("version", help="a release, such as 5.3.0")
    parser.add_argument("root", type=Path, metavar="DIR", help="the store's root")
    parser.add_argument("--settings", type=Path, help="a settings.json")
    parser.add_argument("--out", type=Path, help="where the manifest goes")
    said = parser.parse_args(arguments)
    if not said.root.is_dir():
        parser.error(f"{said.root} is not a directory")
    settings = None
    if said.settings is not None:
        settings = Settings.of(json.loads(said.settings.read_text("utf-8")))
    manifest = serve_all(said.version, said.root, settings)
    text = manifest_text(manifest)
    if said.out is None:
        print(text, end="")
    else:
        said.out.write_text(text, "utf-8")
    print(summary(manifest), file=sys.stderr)
    return 0 if manifest["outcome"] == "served" else 1


def manifest_text(manifest: Row) -> str:
    """A manifest as JSON, a message a line, so that two can be compared by eye."""
    bare = {name: manifest[name] for name in manifest if name != "queues"}
    queues = ",\n".join(map(_queue_text, manifest["queues"]))
    head = json.dumps(bare, indent=1)[:-2]
    return f'{head},\n "queues": [\n{queues}\n ]\n}}\n'


def _queue_text(queue: Row) -> str:
    bare = {name: queue[name] for name in queue if name != "messages"}
    messages = ",\n".join("   " + json.dumps(one) for one in queue["messages"])
    return f'  {json.dumps(bare)[:-1]}, "messages": [\n{messages}\n  ]}}'


def summary(manifest: Row) -> str:
    """One line for people."""
    served = sum(len(queue["messages"]) for queue in manifest["queues"])
    why = f": {manifest['why']}" if manifest["why"] else ""
    return (
        f"RocketMQ {manifest['version']} {manifest['outcome']}{why}; "
        f"{served} messages in {len(manifest['queues'])} queues"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MissingTool as error:
        print(f"serve_rocketmq.py: {error}", file=sys.stderr)
        sys.exit(4)
