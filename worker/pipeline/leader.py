"""The leader: what one process does while it holds the lease.

    stream ─▶ Tail ─┐                                   ┌─ checkpoint, once a second
    scans ─▶ Scanner ├─▶ Coalescer ─▶ Runner (pumps) ─▶ ├─ lease, renewed
    duties ──────────┘                                   └─ readiness
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from worker.errors import FencedOff
from worker.model import Change, Checkpoint, DocKey, Leadership, Position, Scan
from worker.pipeline.around import Around
from worker.pipeline.coalesce import Coalescer, Received
from worker.pipeline.dead_letters import Undertaker
from worker.pipeline.diff import Target
from worker.pipeline.embed import EmbedStep
from worker.pipeline.intake import Tail
from worker.pipeline.publish import Publisher
from worker.pipeline.runner import Runner, Steps
from worker.pipeline.scan import Scanner
from worker.pipeline.scan_book import ScanBook, ScanVoid
from worker.pipeline.shape import Offload, Shaper
from worker.pipeline.watermark import Watermark
from worker.ports import (
    ChangeStream,
    Checkpoints,
    DeadLetters,
    Documents,
    KnowledgeStore,
    Lease,
    Requests,
    TextEmbedder,
)
from worker.sources.source import Source
