"""Which licences of dependencies pass."""

from __future__ import annotations

import pytest

from tests.distributions.licences import Package, faults


@pytest.mark.parametrize(
    ("package", "fault"),
    [
        (Package("a", expression="MIT"), ""),
        (Package("a", expression="Apache-2.0 OR GPL-2.0-only"), ""),
        (Package("a", expression="GPL-3.0-only"), "copyleft"),
        (Package("a", expression="MIT AND LGPL-3.0-or-later"), "copyleft"),
        (Package("a", classifiers=("License :: OSI Approved :: BSD License",)), ""),
        (
            Package("a", classifiers=("License :: OSI Approved :: GNU General Public License (GPL)",)),
            "copyleft",
        ),
        (Package("a", field="BSD 3-Clause License\n\nCopyright …"), ""),
        (Package("a", field="Proprietary"), "unknown"),
        (Package("a", classifiers=("License :: OSI Approved",)), "unknown"),
        (Package("a"), "none given"),
    ],
)
def test_licences(package: Package, fault: str) -> None:
    found = faults([package])
    assert (bool(found), fault in " ".join(found)) == (bool(fault), True)
