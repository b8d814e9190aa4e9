"""Files that are JSON and no results: policies (`tightrope.io.policy_write`), draws, manifests."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.io.documents.coding import Real

POLICY_FORMAT = "tightrope policy"
CONTROLLER_FORMAT = "tightrope controller"
POLICY_VERSION = 2
POLICY_VERSIONS = (1, POLICY_VERSION)
"""Version 1 had objects as entries, which version 2 still reads."""

DRAWS_FORMAT = "tightrope draws"
DRAWS_VERSION = 1

MANIFEST_FORMAT = "tightrope manifest"
MANIFEST_VERSION = 1


class CertifiedFacts(msgspec.Struct, kw_only=True, frozen=True):
    """What the policy of a file attains, and what it speaks of."""

    question: str = msgspec.field(name="property")
    lower: Real
    upper: Real
    over: str
    status: str
    confidence: float | UnsetType | None = UNSET
    holds: bool | UnsetType = UNSET


class PolicyHead(msgspec.Struct, kw_only=True, frozen=True):
    """How a policy file begins: the model's hash, and how states are named.

    `variables` are those whose values name a state; `states` is "index" where numbers are indices.
    """

    format: str = POLICY_FORMAT
    version: int = POLICY_VERSION
    model: str | None = None
    variables: list[str] | UnsetType = UNSET
    states: str | UnsetType = UNSET
    certified: CertifiedFacts | UnsetType = UNSET


class TakenChoice(msgspec.Struct, kw_only=True, frozen=True):
    """A choice by its action, and by its number within the state where several have the same action."""

    action: str | UnsetType = UNSET
    choice: int | UnsetType = UNSET


class LikelyChoice(TakenChoice, kw_only=True, frozen=True):
    """One of the choices that are taken at random."""

    probability: float


class LaterChoice(TakenChoice, kw_only=True, frozen=True):
    """What is done from a step on."""

    since: int = msgspec.field(name="from")


class PolicyEntry(TakenChoice, kw_only=True, frozen=True):
    """A state and what is done there: one choice, several at random, or one per step."""

    state: Any
    choices: list[LikelyChoice] | UnsetType = UNSET
    steps: list[LaterChoice] | UnsetType = UNSET


class PolicyDocument(PolicyHead, kw_only=True, frozen=True):
    """A policy file. An entry is an object, or a list: [state, action, number of the choice], or
    [state, [[from step, action, number], …]]."""

    policy: list[list[Any] | PolicyEntry]


class SignatureDraws(msgspec.Struct, kw_only=True, frozen=True):
    """How often choices of one signature are drawn altogether; `choices` and `example` say which they are."""

    signature: list[str]
    draws: int
    choices: int | UnsetType = UNSET
    example: str | UnsetType = UNSET


class DrawsDocument(msgspec.Struct, kw_only=True, frozen=True):
    """How many draws of which choice were planned (`tightrope.data.planned_draws`)."""

    format: str = DRAWS_FORMAT
    version: int = DRAWS_VERSION
    model: str | None = None
    planned_from: str | None = None
    draws: list[SignatureDraws]


class ManifestDocument(msgspec.Struct, kw_only=True, frozen=True):
    """Which files of a directory are tightrope's, with their SHA-256 (`tightrope.io.output`)."""

    format: str = MANIFEST_FORMAT
    version: int = MANIFEST_VERSION
    kind: str
    files: dict[str, str | None]
    added: dict[str, str | None]
    replacing: dict[str, str | None]
