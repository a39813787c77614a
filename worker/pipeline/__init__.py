"""The way of a change, one file a step; the steps do not import each other, only `runner` does."""
