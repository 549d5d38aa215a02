# Made by tools/make_reference.py.
from sdckit.core.checks import NotApplicable as NotApplicable
from sdckit.core.disclosure import Disclosure as Disclosure
from sdckit.io.datasets import load_dataset as load_dataset
from sdckit.io.datasets import load_sample as load_sample
from sdckit.masking import METHODS as METHODS
from sdckit.masking import mask as mask
from sdckit.metrics import METRICS as METRICS
from sdckit.metrics import loss as loss
from sdckit.metrics import risk as risk
from sdckit.metrics.evaluation import Evaluation as Evaluation
from sdckit.metrics.evaluation import evaluate as evaluate
from sdckit.metrics.loss.bounded_cells import il_variables as il_variables
from sdckit.metrics.loss.cells import il1 as il1
from sdckit.metrics.loss.cells import il1s as il1s
from sdckit.metrics.loss.cells import mae as mae
from sdckit.metrics.loss.cells import mse as mse
from sdckit.metrics.loss.distributions import hellinger as hellinger
from sdckit.metrics.loss.distributions import ks as ks
from sdckit.metrics.loss.distributions import wasserstein as wasserstein
from sdckit.metrics.loss.moments import ci_overlap as ci_overlap
from sdckit.metrics.loss.moments import covariance_loss as covariance_loss
from sdckit.metrics.loss.moments import eigen as eigen
from sdckit.metrics.loss.moments import il_correl as il_correl
from sdckit.metrics.loss.mse_split import mse_marginal as mse_marginal
from sdckit.metrics.loss.mse_split import mse_permutation as mse_permutation
from sdckit.metrics.loss.probabilistic import pil as pil
from sdckit.metrics.loss.propensity import pmse as pmse
from sdckit.metrics.loss.rank import brmae as brmae
from sdckit.metrics.loss.rank import brmse as brmse
from sdckit.metrics.loss.rank_means import rank_mae as rank_mae
from sdckit.metrics.loss.rank_means import rank_mse as rank_mse
from sdckit.metrics.original import Original as Original
from sdckit.metrics.original import prepare as prepare
from sdckit.metrics.rank_summary import rank_table as rank_table
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
from sdckit.metrics.risk.trade_off_score import score as score
from sdckit.progress import show_progress as show_progress
from sdckit.selection.bisection import recommend as recommend
from sdckit.selection.choice import Choice as Choice
from sdckit.selection.limits import LimitsMissed as LimitsMissed
from sdckit.selection.release import Release as Release
from sdckit.selection.release import release as release
from sdckit.selection.sweeping import Sweep as Sweep
from sdckit.selection.sweeping import sweep as sweep

rmae = rank_mae
rmse = rank_mse
__version__: str
