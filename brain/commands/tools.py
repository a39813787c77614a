"""`tools`: what a model is told of the tools. Needs neither database nor key."""

import json

import click

from brain.registry import Registry
from brain.schema import Format, rendered
from brain.tools import ALL_TOOLS


def run(form: Format) -> None:
    """Print a bare JSON array of all tools, in their order."""
    click.echo(json.dumps(rendered(Registry(ALL_TOOLS), form), indent=2))
