# Made by tools/make_reference.py.
from sdckit.risk.attacks import dbrl as dbrl
from sdckit.risk.attacks import dbrl_mahalanobis as dbrl_mahalanobis
from sdckit.risk.attacks import dbrl_rank as dbrl_rank
from sdckit.risk.attacks import linkage as linkage
from sdckit.risk.attacks import linkage_outliers as linkage_outliers
from sdckit.risk.attacks import linkage_sure as linkage_sure
from sdckit.risk.attacks import matching as matching
from sdckit.risk.attacks import window as window
from sdckit.risk.attribute_disclosure import attribute as attribute
from sdckit.risk.groups import dominance as dominance
from sdckit.risk.groups import uniques as uniques
from sdckit.risk.intervals import rid as rid
from sdckit.risk.intervals import rmdid as rmdid
from sdckit.risk.intervals import sdid as sdid
from sdckit.risk.units import linkage_units as linkage_units
