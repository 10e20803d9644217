"""Laws of programs on 2 to 8 devices: each try compiles one, so that few are made."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings

from effax.testing import laws
from tests.laws.trying import holds

Test = Callable[[], None]

fewer = settings(
    max_examples=settings.default.max_examples // 2 if settings.default else 12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

test_shard_map_runs_on_devices = fewer(holds(laws.shard_map_runs_on_devices))
test_placed_programs_agree = fewer(holds(laws.placed_programs_agree))
