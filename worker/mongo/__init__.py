"""The only room that knows MongoDB's driver: each file adapts one port of `worker.ports`."""
