"""Algorithms of other papers, one file each. They import `alexp.extend` and nothing else of the library."""

from alexp.rivals.balancing import Balancing
from alexp.rivals.corral import Corral
from alexp.rivals.d3rb import D3RB, ED2RB
from alexp.rivals.doubling import Doubling
from alexp.rivals.dr_lasso import DRLasso
from alexp.rivals.estc import ESTC
from alexp.rivals.etc import ETC
from alexp.rivals.ets import ETS
from alexp.rivals.exp4ix import EXP4IX
from alexp.rivals.exp4ls import EXP4LS
from alexp.rivals.fs_scb import FSSCB
from alexp.rivals.lasso_bandit import LassoBandit
from alexp.rivals.linucb import LinUCB
from alexp.rivals.linucb_plus import LinUCBPlusPlus
from alexp.rivals.modcb import ModCB
from alexp.rivals.o2cs import O2CSEW
from alexp.rivals.o2cs_sew import O2CSSEW
from alexp.rivals.popart import PopArt
from alexp.rivals.sa_lasso import SALasso
from alexp.rivals.sl_ucb import SLUCB
from alexp.rivals.smoothed_corral import SmoothedCorral
from alexp.rivals.squarecb import SquareCB
from alexp.rivals.th_lasso import THLasso
from alexp.rivals.uniform import UniformRandom

__all__ = [
    "D3RB",
    "ED2RB",
    "ESTC",
    "ETC",
    "ETS",
    "EXP4IX",
    "EXP4LS",
    "FSSCB",
    "O2CSEW",
    "O2CSSEW",
    "SLUCB",
    "Balancing",
    "Corral",
    "DRLasso",
    "Doubling",
    "LassoBandit",
    "LinUCB",
    "LinUCBPlusPlus",
    "ModCB",
    "PopArt",
    "SALasso",
    "SmoothedCorral",
    "SquareCB",
    "THLasso",
    "UniformRandom",
]
