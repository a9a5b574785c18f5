"""The executor that the options of a command, or the keywords of a function, ask for."""

from __future__ import annotations

import os
from typing import Any, TypedDict

from bitextmine.distributed.ray import Ray
from bitextmine.errors import UsageError
from bitextmine.executor import Executor, Local


class ExecutorKeywords(TypedDict, total=False):
    """Keywords of functions that can use a cluster; see `bitextmine.distributed.ray.Ray` for their meaning."""

    ray: str | None
    ray_cpus: int
    ray_gpus: int
    ray_rows: int | None
    ray_report: str | os.PathLike[str] | None


def make_executor(
    ray: str | None = None,
    ray_cpus: int = 1,
    ray_gpus: int = 0,
    ray_rows: int | None = None,
    ray_report: str | os.PathLike[str] | None = None,
) -> Executor:
    """Return the executor; raise UsageError for a wrong value, and for options of a cluster that is not given."""
    if ray is not None:
        return Ray(ray, ray_cpus, ray_gpus, ray_rows, ray_report)
    defaults = {"ray_cpus": (ray_cpus, 1), "ray_gpus": (ray_gpus, 0), "ray_rows": (ray_rows, None)}
    for name, (value, default) in {**defaults, "ray_report": (ray_report, None)}.items():
        if value != default:
            raise UsageError(f"{name} (--{name.replace('_', '-')}) is for --ray, which is not given")
    return Local()


def take_executor(options: dict[str, Any]) -> Executor:
    """Return the executor, and remove its keywords from `options`."""
    names = ExecutorKeywords.__annotations__
    return make_executor(**{name: options.pop(name) for name in names if name in options})
