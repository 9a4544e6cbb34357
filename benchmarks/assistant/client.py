"""A scripted client of `stepscope mcp`, over stdio."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from mcp import ClientSession, StdioServerParameters, stdio_client

Result = TypeVar("Result")


class Client:
    """Calls tools and keeps what they said."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self.said: list[str] = []

    async def tools(self) -> list[str]:
        """The names of the tools that are offered."""
        return [tool.name for tool in (await self._session.list_tools()).tools]

    async def call(self, name: str, **arguments: Any) -> str:
        """What the tool says; an error where it refuses."""
        text, is_error = await self._call(name, arguments)
        if is_error:
            raise RuntimeError(text)
        return text

    async def refusal(self, name: str, **arguments: Any) -> str:
        """Why the tool refuses; an error where it does not."""
        text, is_error = await self._call(name, arguments)
        if not is_error:
            raise RuntimeError(f"{name} answered: {text}")
        return text

    async def _call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        result = await self._session.call_tool(name, arguments)
        text = "".join(getattr(part, "text", "") for part in getattr(result, "content", ()))
        self.said.append(text)
        return text, bool(getattr(result, "is_error", False))


async def connected(
    folders: Sequence[str],
    talk: Callable[[Client], Awaitable[Result]],
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Start a server for the folders, shake hands, talk, and end it."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "stepscope", "mcp", *folders],
        env=dict(environment) if environment is not None else None,
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await talk(Client(session))
