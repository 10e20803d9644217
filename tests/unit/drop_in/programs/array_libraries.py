"""SciPy's functions and scikit-learn's estimators on arrays, where both are installed."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
x, p = jnp.array([0.5, 1.5, 2.5, 4.0, 3.0]), jnp.array([0.2, 0.3, 0.5])
table = jnp.asarray(np.random.default_rng(0).normal(size=(12, 3)))


def scipy_results():
    from scipy import cluster, fft, integrate, signal, special, stats

    yield special.logsumexp(x), np.log(np.sum(np.exp(x)))
    yield special.softmax(x).sum(), 1
    yield special.expit(x), 1 / (1 + np.exp(-x))
    yield stats.entropy(p), -np.sum(p * np.log(p))
    yield stats.zscore(x), (x - np.mean(x)) / np.std(x)
    yield stats.gmean(x), np.exp(np.mean(np.log(x)))
    yield fft.rfft(x), np.fft.rfft(x)
    yield signal.fftconvolve(x, p), np.convolve(x, p)
    yield integrate.trapezoid(x), np.trapezoid(np.asarray(x))
    yield signal.detrend(x).sum(), 0
    yield cluster.vq.whiten(table), table / np.std(table, axis=0)


def sklearn_results():
    import sklearn
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.preprocessing import KernelCenterer

    kernel = table @ table.T
    for estimator, data in (
        (PCA(2, svd_solver="full"), table),
        (Nystroem(kernel="linear", n_components=3, random_state=0), table),
        (KernelCenterer(), kernel),
    ):
        with sklearn.config_context(array_api_dispatch=True):
            found = estimator.fit_transform(data)
        yield found, sklearn.base.clone(estimator).fit_transform(np.asarray(data))


for found, wanted in (scipy_results if sys.argv[1] == "scipy" else sklearn_results)():
    assert isinstance(found, jax.Array), type(found)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    print("same")
