"""Direct and iterative solvers, least squares, operators with structure, gradients of solutions."""

import jax
import jax.numpy as jnp
import lineax as lx

jax.config.update("jax_enable_x64", True)
key = jax.random.PRNGKey(0)
matrix = jax.random.normal(key, (4, 4)) + 4 * jnp.eye(4)
vector = jnp.arange(1.0, 5.0)
spd = matrix @ matrix.T
positive = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)
general = lx.MatrixLinearOperator(matrix)

solvers = {
    "auto": lx.AutoLinearSolver(well_posed=True),
    "lu": lx.LU(),
    "qr": lx.QR(),
    "svd": lx.SVD(),
    "gmres": lx.GMRES(rtol=1e-8, atol=1e-8),
    "bicgstab": lx.BiCGStab(rtol=1e-8, atol=1e-8),
}
for name, solver in solvers.items():
    print(name, lx.linear_solve(general, vector, solver).value)
for name, solver in {"cholesky": lx.Cholesky(), "cg": lx.CG(rtol=1e-8, atol=1e-8)}.items():
    print(name, lx.linear_solve(positive, vector, solver).value)

tall = lx.MatrixLinearOperator(jax.random.normal(key, (6, 3)))
for name, solver in {"qr": lx.QR(), "svd": lx.SVD(), "normal": lx.Normal(lx.Cholesky())}.items():
    print("least squares", name, lx.linear_solve(tall, jnp.arange(6.0), solver).value)
wide = lx.MatrixLinearOperator(jax.random.normal(key, (3, 6)))
print("minimum norm", lx.linear_solve(wide, vector[:3], lx.QR()).value)

tridiagonal = lx.TridiagonalLinearOperator(jnp.full(4, 3.0), jnp.ones(3), -jnp.ones(3))
print("tridiagonal", lx.linear_solve(tridiagonal, vector).value)
diagonal = lx.DiagonalLinearOperator(vector)
print("diagonal", lx.linear_solve(diagonal, vector).value)
triangular = lx.MatrixLinearOperator(jnp.tril(matrix), lx.lower_triangular_tag)
print("triangular", lx.linear_solve(triangular, vector).value)
function = lx.FunctionLinearOperator(lambda x: matrix @ x, jax.eval_shape(lambda: vector))
print("function", lx.linear_solve(function, vector, lx.GMRES(rtol=1e-8, atol=1e-8)).value)
jacobian = lx.JacobianLinearOperator(lambda x, _: jnp.tanh(matrix @ x), 0.01 * vector)
print("jacobian", lx.linear_solve(jacobian, vector).value)
print("algebra", (general + 2 * positive @ general.T).mv(vector), lx.diagonal(general))
print(
    "block",
    lx.linear_solve(
        lx.PyTreeLinearOperator({"a": {"a": matrix}}, jax.eval_shape(lambda: {"a": vector})),
        {"a": vector},
    ).value,
)

for name in ("lu", "qr", "gmres"):
    solve = lambda m, v: jnp.sum(
        lx.linear_solve(lx.MatrixLinearOperator(m), v, solvers[name]).value ** 2
    )
    print("grad", name, jax.jit(jax.grad(solve, argnums=(0, 1)))(matrix, vector))
tangent = jax.jvp(
    lambda m: lx.linear_solve(lx.MatrixLinearOperator(m), vector).value, (matrix,), (jnp.eye(4),)
)
print("jvp", tangent[1])
batched = jax.vmap(lambda v: lx.linear_solve(general, v).value)
print("vmap", batched(jnp.stack([vector, -vector])))
state = lx.LU().init(general, {})
print("state", lx.linear_solve(general, vector, lx.LU(), state=state).value)
singular = lx.MatrixLinearOperator(jnp.ones((2, 2)))
solution = lx.linear_solve(singular, vector[:2], lx.LU(), throw=False)
print("singular", solution.result == lx.RESULTS.singular)
