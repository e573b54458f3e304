# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Every error the core raises, so that a caller can catch one class or a precise one."""


class RobotMemoryError(Exception):
    """Root of all errors of the core; its text is one sentence meant for the operator."""


class InvalidRequestError(RobotMemoryError):
    """A field of a request has a value that cannot be used.

    The text starts with the name of the field.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class NotFoundError(RobotMemoryError):
    """The memory or episode that was named is not in the store."""


class ConfigError(RobotMemoryError):
    """A setting has a value that is not allowed, or one that cannot work on this machine.

    The text names the setting, the value and what is allowed.
    """


class StoreError(RobotMemoryError):
    """The database cannot be opened, read or written."""


class SearchError(RobotMemoryError):
    """Neither the keyword engine nor the vector engine could answer."""


class EmbeddingError(RobotMemoryError):
    """The embedding backend could not embed; the text says why and what to do."""
