"""The option `--as-curl`: what a command would send, as curl commands; nothing is sent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from . import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.sessions.session import Session
    from dragoman_api.changes import HttpRequest, Outcome

    from .options import Options

AS_CURL = click.option(
    "--as-curl", is_flag=True, help="Print the requests as curl commands, with secrets as variables; send none."
)


def write_curl(
    options: Options, session: Session, requests: Sequence[HttpRequest], *, refusals: Sequence[Outcome] = ()
) -> None:
    """Write one command per request, and say which variables hold the secrets."""
    curl = session.curl
    commands = [curl.command(request) for request in requests]
    if options.json:
        documents = zip(requests, commands, strict=True)
        output.write_json(
            {
                "requests": [
                    {
                        "method": request.method,
                        "path": request.path,
                        "body": request.body,
                        "content_type": request.content_type,
                        "curl": command,
                    }
                    for request, command in documents
                ],
                "variables": curl.variables,
                "notes": curl.notes,
                "refusals": refusals,
            }
        )
        return
    for command in commands:
        sys.stdout.write(f"{command}\n")  # nothing in it means anything to a terminal
    for name, description in curl.variables.items():
        options.say(f"${name} is {description}")
    for note in curl.notes:
        options.say(note)
    for refusal in refusals:
        output.say(f"{refusal.status}: {refusal.reason}")
