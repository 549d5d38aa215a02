# Made by tools/make_reference.py.
from sdckit.risk.attribute_disclosure import attribute as attribute
from sdckit.risk.group_dominance import dominance as dominance
from sdckit.risk.interval import rid as rid
from sdckit.risk.interval import sdid as sdid
from sdckit.risk.record_linkage import dbrl as dbrl
from sdckit.risk.record_linkage import dbrl_mahalanobis as dbrl_mahalanobis
from sdckit.risk.record_linkage import dbrl_rank as dbrl_rank
from sdckit.risk.record_linkage import linkage as linkage
from sdckit.risk.record_linkage import linkage_outliers as linkage_outliers
from sdckit.risk.record_linkage import linkage_sure as linkage_sure
from sdckit.risk.record_linkage import matching as matching
from sdckit.risk.record_linkage import window as window
from sdckit.risk.robust_interval import rmdid as rmdid
from sdckit.risk.unique_records import uniques as uniques
from sdckit.risk.unit_linkage import linkage_units as linkage_units
