"""How much Hypothesis searches: our profiles, with every setting named.

A setting that is not named would come from whatever profile is loaded. In CI that is
Hypothesis's own, derandomized and without a database, whoever registers others.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import DirectoryBasedExampleDatabase

PROFILE_NAMES = ("dev", "ci", "nightly")
_EXAMPLES = {"dev": 100, "ci": 200, "nightly": 5000}
_DATABASE = ".hypothesis/crashmq"


def search_settings(
    profile: str,
    *,
    max_examples: int | None = None,
    steps: int = 30,
    shrinks: bool = True,
) -> settings:
    """The settings of one profile.

    Args:
        profile: ``dev`` (another seed each time, remembers failures), ``ci`` (the same
            programs each time, remembers nothing) or ``nightly`` (many programs).
        max_examples: how many programs to try; None: the profile's number.
        steps: rules that a machine runs in one program.
        shrinks: whether Hypothesis shrinks and prints what it found. Our ``shrink`` is
            better at it: it knows that any op can be left out.

    Raises:
        ValueError: there is no such profile.
    """
    if profile not in PROFILE_NAMES:
        raise ValueError(
            f"there is no search profile {profile!r}; take one of "
            f"{', '.join(PROFILE_NAMES)}."
        )
    remembers = profile != "ci"
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(
        max_examples=max_examples or _EXAMPLES[profile],
        stateful_step_count=steps,
        derandomize=profile == "ci",
        database=DirectoryBasedExampleDatabase(_DATABASE) if remembers else None,
        phases=(*phases, Phase.shrink) if shrinks else phases,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=True,
        suppress_health_check=tuple(HealthCheck),
        verbosity=Verbosity.normal if shrinks else Verbosity.quiet,
        backend="hypothesis",
    )


def register_profiles() -> None:
    """Register the profiles with Hypothesis, as ``crashmq-dev`` and so on."""
    for name in PROFILE_NAMES:
        settings.register_profile(f"crashmq-{name}", search_settings(name))


def load_profile(profile: str) -> None:
    """Make one profile the default of every test from now on."""
    register_profiles()
    settings.load_profile(f"crashmq-{profile}")
