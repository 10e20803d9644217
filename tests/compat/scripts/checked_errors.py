"""Errors as values by checkify; debug printing; callbacks; settings; error types."""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify


def f(x, i):
    checkify.check(i >= 0, "index must not be negative, got {i}", i=i)
    return jnp.sin(x[i])


checked = jax.jit(checkify.checkify(f))
error, out = checked(jnp.arange(3.0), 1)
print(error.get(), out)
error, out = checked(jnp.arange(3.0), -1)
print(error.get().split("(")[0])
try:
    error.throw()
except checkify.JaxRuntimeError as raised:
    print("raised", "must not be negative" in str(raised))

errors = checkify.user_checks | checkify.index_checks | checkify.float_checks
everything = checkify.checkify(lambda x, i: jnp.log(x)[i], errors=errors)
print(everything(jnp.ones(3), 5)[0].get() is not None, everything(jnp.ones(3), 0)[0].get())
print("nan" in everything(-jnp.ones(3), 0)[0].get())
error, _ = checkify.checkify(
    lambda x: jax.lax.scan(lambda c, x: (c / x, None), 1.0, x)[0], errors=checkify.div_checks
)(jnp.array([1.0, 0.0]))
print("division by zero" in error.get())
batched = jax.vmap(checkify.checkify(lambda x: checkify.check(x > 0, "positive")))(
    jnp.array([1.0, -1.0])
)
print(batched[0].get() is not None)

jax.debug.print("x = {x}", x=jnp.arange(2))
jax.jit(lambda x: jax.debug.print("traced {}", x))(3)
result = jax.pure_callback(
    lambda x: np.cumsum(x), jax.ShapeDtypeStruct((3,), jnp.float32), jnp.ones(3)
)
print(result)
with jax.debug_nans(True), contextlib.redirect_stdout(io.StringIO()) as shown:
    try:
        jnp.log(-1.0)
    except FloatingPointError:
        shown.close()
print(shown.closed)
with jax.disable_jit():
    print(jax.jit(lambda x: "positive" if x > 0 else "other")(1.0))
print(jax.config.jax_enable_x64, jnp.asarray(1.0).dtype)
with jax.enable_x64(True):
    print(jnp.asarray(1.0).dtype)


def raises(error, function, *args):
    try:
        function(*args)
    except error:
        return True
    return False


print(raises(TypeError, jax.jit(lambda x: 1 if x > 0 else 0), 1.0))
print(raises(TypeError, jax.grad(lambda x: x), jnp.ones(2)))
print(raises(TypeError, jax.grad(lambda x: x), 1))
print(raises(ValueError, jax.vmap(lambda x, y: x), jnp.ones(2), jnp.ones(3)))
print(raises(TypeError, jnp.reshape, jnp.ones(3), (2,)))
print(raises(TypeError, lambda: jnp.ones((2, 3)) @ jnp.ones(2)))
print(raises(TypeError, lambda: jnp.ones(2) + jnp.ones(3)))
print(raises(jax.errors.TracerBoolConversionError, jax.jit(bool), 1.0))
print(raises(jax.errors.TracerArrayConversionError, jax.jit(np.asarray), 1.0))
print(raises(jax.errors.ConcretizationTypeError, jax.jit(jnp.arange), 3))
