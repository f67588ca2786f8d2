"""A client of the Model Context Protocol that knows nothing of a server but what its list of tools says.

It finds a tool by words of its description, checks what it gives and gets with the schemas, and learns from them which
answer goes on with which argument, and where handles come from. Refusals it follows as data: the calls that they name.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import jsonschema

from library import handle

if TYPE_CHECKING:
    from mcp import Client

MOST_TURNS = 5
"""Calls after which a task that was refused is given up."""


class SchemaAgent:
    """One agent.

    Attributes:
        connection: What the list of connections has named.
        calls: The names of the tools that it has called.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tools: dict[str, Any] = {}
        self.connection = ""
        self.calls: list[str] = []

    async def look_around(self) -> None:
        """Read the list of tools, and find the connection."""
        self._tools = {tool.name: tool for tool in (await self._client.list_tools()).tools}
        [served] = (await self.call(self.tool("connections you may use")))["connections"]
        self.connection = served["name"]

    @property
    def tools(self) -> list[str]:
        """The names of all tools."""
        return [*self._tools]

    def tool(self, *words: str) -> str:
        """Return the one tool whose description has these words."""
        names = [
            name for name, tool in self._tools.items() if all(word in tool.description.casefold() for word in words)
        ]  # fmt: skip
        assert len(names) == 1, (words, names)
        return names[0]

    def argument(self, tool: str, *words: str) -> str:
        """Return the argument of a tool whose description has these words."""
        properties = self._tools[tool].input_schema["properties"]
        names = [
            name for name, part in properties.items() if all(word in part.get("description", "") for word in words)
        ]  # fmt: skip
        assert len(names) == 1, (tool, words, names)
        return names[0]

    async def answer(self, tool: str, **arguments: object) -> tuple[Any, bool]:
        """Call a tool with arguments that fit its schema; return the answer, which fits as well, and if it refuses."""
        described = self._tools[tool]
        if "connection" in described.input_schema["properties"]:
            arguments = {"connection": self.connection} | arguments
        jsonschema.validate(arguments, described.input_schema)
        self.calls.append(tool)
        result = await self._client.call_tool(tool, arguments)
        if not result.is_error:
            jsonschema.validate(result.structured_content, described.output_schema)
        return result.structured_content, result.is_error

    async def call(self, tool: str, **arguments: object) -> Any:
        """Call a tool that answers."""
        answer, refused = await self.answer(tool, **arguments)
        assert not refused, answer
        return answer

    async def pages(self, tool: str, **arguments: object) -> list[Any]:
        """Call a tool, and go on as the schema of its answers says, to the end."""
        following = self._tools[tool].output_schema["properties"]["next"]
        argument = re.search(r"`(\w+)` of the next call", following["description"])[1]
        answers = [await self.call(tool, **arguments)]
        while (place := answers[-1].get("next")) is not None:
            answers.append(await self.call(tool, **arguments | {argument: place}))
        return answers

    async def mended(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; follow each refusal's calls, and take the nearest name that they list, until it answers."""
        for _ in range(MOST_TURNS):
            answer, refused = await self.answer(tool, **arguments)
            if not refused:
                return answer
            advised = next(call for call in answer["calls"] if call.get("tool"))
            if advised["tool"] == tool:
                arguments = advised["arguments"]
                continue
            listed = await self.call(advised["tool"], **advised["arguments"])
            names = [item["name"] for item in (listed["objects"] if "objects" in listed else listed["columns"])]
            arguments = _corrected(arguments, names, of_objects="objects" in listed)
        raise AssertionError(answer)

    def handles(self, tool: str, answer: Any) -> list[str]:
        """Return the handle of each row of an answer, as the schema says that they count on."""
        description = self._tools[tool].output_schema["properties"]["first_key"]["description"]
        after, first = re.search(r"(\w+\.\d+) after (\w+\.\d+)", description).groups()
        assert int(after.split(".")[1]) == int(first.split(".")[1]) + 1
        return [handle(answer, at) for at in range(len(answer["rows"]))]


def _corrected(arguments: dict[str, Any], names: list[str], *, of_objects: bool) -> dict[str, Any]:
    """Replace the names that do not exist by the nearest that do."""

    def nearest(name: str) -> str:
        return name if name in names else get_close_matches(name, names, n=1, cutoff=0.4)[0]

    if of_objects:
        return arguments | {"object": nearest(arguments["object"])}
    filters = [row | {"column": nearest(row["column"])} for row in arguments.get("filters", ())]
    return arguments | ({"filters": filters} if filters else {})
