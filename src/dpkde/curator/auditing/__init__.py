"""Audits of what this package publishes: they need points, and are for the curator.

* `neighbours`: tables that differ by one record, as telling ones as there are;
* `repeated`: a sketch taken once, and its noise drawn many times by the one road;
* `transcript`: two runs with the same noisy outputs, which must not differ in anything;
* `course`: all of it, as `dpkde audit` runs it.
"""
