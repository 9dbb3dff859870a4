"""The audit: run a mechanism on neighbouring data sets, and bound its ε and δ from below.

* `evidence`: what an audit is, what it returns, and why that holds;
* `events`: sets of outputs that may be telling: half-lines, residues, points;
* `directions`: numbers to read off an output, which those events are about;
* `likelihood`: the number that tells most where the law of the noise is what it is said to be;
* `intervals`: bounds on a probability from a count.

An audit can prove a mechanism wrong. That it finds nothing proves nothing: its power rests on the
neighbours that it is given and on the events that it knows (``docs/audit.md``).
"""

from __future__ import annotations

from dpkde.privacy.audit.evidence import AuditResult, Finding, Mechanism, audit
from dpkde.privacy.audit.intervals import clopper_pearson
from dpkde.privacy.audit.likelihood import likelihood_ratio

__all__ = ["AuditResult", "Finding", "Mechanism", "audit", "clopper_pearson", "likelihood_ratio"]
