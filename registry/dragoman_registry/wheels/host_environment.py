"""The environment a driver must fit: versions and tags of this host, and the modules it provides for every driver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .packaging_parsers import parse_requirement, project_name

API = "dragoman-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The environment a driver must fit.

    Attributes:
        tags: Accepted wheel tags, best first.
    """

    api: str
    python: str
    tags: tuple[str, ...]

    @classmethod
    def here(cls) -> Host:
        """Describe this process."""
        import platform
        from importlib.metadata import version

        from packaging.tags import sys_tags

        tags = tuple(str(tag) for tag in sys_tags())
        return cls(api=version(API), python=platform.python_version().rstrip("+"), tags=tags)


@cache
def provided() -> dict[str, str]:
    """Map each top-level module that the host provides for every driver to its distribution.

    These are `dragoman-api` and its dependencies, in their installed versions.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    owners = dict.fromkeys(("dragoman", "dragoman_api", "dragoman_registry", "dragoman_worker"), "dragoman")
    todo, seen = [API], set[str]()
    while todo:
        project = todo.pop()
        if project in seen:
            continue
        seen.add(project)
        owners.setdefault(project.replace("-", "_"), project)
        try:
            package = distribution(project)
        except PackageNotFoundError:
            continue  # a dependency for another platform
        for file in package.files or ():
            top = file.parts[0]
            if top.endswith((".py", ".so", ".pyd")) or (len(file.parts) > 1 and top.isidentifier()):
                owners.setdefault(top.partition(".")[0], project)
        for text in package.requires or ():
            requirement = parse_requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(project_name(requirement.name))
    return owners


def provided_projects() -> set[str]:
    """List the projects that the host provides to every driver, and to the libraries of every driver."""
    return {*provided().values()} - {"dragoman"} | {API}
