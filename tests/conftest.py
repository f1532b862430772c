"""What every test shares."""

import os

from hypothesis import HealthCheck, settings

# Two shared cores make time limits on one example a source of false alarms.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", parent=_PATIENT, max_examples=50)
settings.register_profile("ci", parent=_PATIENT, max_examples=200, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
