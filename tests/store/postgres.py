"""The builders at the place of before."""

from tests.support.postgres import *  # noqa: F403
