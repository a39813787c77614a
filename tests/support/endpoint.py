"""An embedding endpoint for tests: the model that it has, and how a test connects to it."""

from collections.abc import Callable
from typing import Final

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.pin import Model

KEY: Final = "sk-or-secret-0123456789"
MODEL: Final = Model("openai/text-embedding-3-small", 8, 8192)
PATIENCE: Final = 30.0
"""Seconds for everything that ends by itself, however busy the machine is."""

Connect = Callable[[str], OpenRouterClient]
"""A client for a base URL."""
