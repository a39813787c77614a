"""Batching, limits and retries around the embedding client of `brain.knowledge`."""
