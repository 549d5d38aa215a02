# Made by tools/make_reference.py.
from sdckit.metrics.risk.attribute_disclosure import attribute as attribute
from sdckit.metrics.risk.group_dominance import dominance as dominance
from sdckit.metrics.risk.interval import rid as rid
from sdckit.metrics.risk.interval import sdid as sdid
from sdckit.metrics.risk.record_linkage import dbrl as dbrl
from sdckit.metrics.risk.record_linkage import dbrl_mahalanobis as dbrl_mahalanobis
from sdckit.metrics.risk.record_linkage import dbrl_rank as dbrl_rank
from sdckit.metrics.risk.record_linkage import linkage as linkage
from sdckit.metrics.risk.record_linkage import linkage_outliers as linkage_outliers
from sdckit.metrics.risk.record_linkage import matching as matching
from sdckit.metrics.risk.record_linkage import window as window
from sdckit.metrics.risk.robust_interval import rmdid as rmdid
from sdckit.metrics.risk.unique_records import uniques as uniques
from sdckit.metrics.risk.unit_linkage import linkage_units as linkage_units
