"""What can be imported from here, and where it lives: listed once, read by `dpkde.lazy` too."""

from dpkde.prior.base import Answered as Answered
from dpkde.prior.base import Private as Private
from dpkde.prior.base import QueryMechanism as QueryMechanism
from dpkde.prior.base import Session as Session
from dpkde.prior.bernstein import Bernstein as Bernstein
from dpkde.prior.eventrig import EvenTrig as EvenTrig
from dpkde.prior.hrw import HRW as HRW
from dpkde.prior.independent import GaussianAnswers as GaussianAnswers
from dpkde.prior.independent import LaplaceAnswers as LaplaceAnswers
from dpkde.prior.noisysample import NoisySample as NoisySample
from dpkde.prior.online import Online as Online
from dpkde.prior.ours import OurRelease as OurRelease
from dpkde.prior.pmw import PMW as PMW
from dpkde.prior.queries import Answers as Answers
from dpkde.prior.queries import answer as answer
from dpkde.prior.smalldb import SmallDB as SmallDB
from dpkde.prior.universe import Universe as Universe
from dpkde.release.synthetic import SyntheticRelease as SyntheticRelease

__all__: list[str]
