# Made by tools/make_reference.py.
from sdckit.metrics.loss.cells import il1 as il1
from sdckit.metrics.loss.cells import il1s as il1s
from sdckit.metrics.loss.cells import il_variables as il_variables
from sdckit.metrics.loss.cells import mae as mae
from sdckit.metrics.loss.cells import mse as mse
from sdckit.metrics.loss.cells import mse_marginal as mse_marginal
from sdckit.metrics.loss.cells import mse_permutation as mse_permutation
from sdckit.metrics.loss.cells import suppressed as suppressed
from sdckit.metrics.loss.declared_estimates import estimates as estimates
from sdckit.metrics.loss.declared_estimates import estimates_worst as estimates_worst
from sdckit.metrics.loss.distributions import hellinger as hellinger
from sdckit.metrics.loss.distributions import ks as ks
from sdckit.metrics.loss.distributions import wasserstein as wasserstein
from sdckit.metrics.loss.moments import ci_overlap as ci_overlap
from sdckit.metrics.loss.moments import covariance_loss as covariance_loss
from sdckit.metrics.loss.moments import eigen as eigen
from sdckit.metrics.loss.moments import il_correl as il_correl
from sdckit.metrics.loss.probabilistic import pil as pil
from sdckit.metrics.loss.propensity import pmse as pmse
from sdckit.metrics.loss.rank import brmae as brmae
from sdckit.metrics.loss.rank import brmse as brmse
from sdckit.metrics.loss.rank import rank_mae as rank_mae
from sdckit.metrics.loss.rank import rank_mse as rank_mse

rmae = rank_mae
rmse = rank_mse
