"""The builders at the place of before."""

from tests.support.make import *  # noqa: F403
