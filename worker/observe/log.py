"""The worker's logs are those that both halves share: `brain.knowledge.log`."""

from brain.knowledge.log import QUEUE_LINES, JsonFormatter, LogPipe, PersonFormatter, configure, log

__all__ = ["QUEUE_LINES", "JsonFormatter", "LogPipe", "PersonFormatter", "configure", "log"]
